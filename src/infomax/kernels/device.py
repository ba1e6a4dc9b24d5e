"""Choice of the device to compute on."""

from __future__ import annotations

import torch

from infomax.errors import InputError


def choose_device(name: str) -> torch.device:
    """Return the device with this name; ``auto`` is the GPU if there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if str(name).partition(":")[0] not in ("cpu", "cuda"):
        raise InputError(
            f"device {name}", "auto, cpu, cuda, cuda:1, ...", "none of them", "Use auto or cpu."
        )
    try:
        torch.empty(0, device=name)
        device = torch.device(name)
        if device.type == "cuda" and device.index is not None:
            torch.cuda.set_device(device)  # where kernels are launched
        return device
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(
            f"device {name}", "a device of this machine", f"none ({reason})", "Use auto or cpu."
        ) from None
