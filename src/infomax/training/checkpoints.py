"""Tensors and JSON values in one safetensors file, which appears complete or not at all."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open

from infomax.errors import InputError
from infomax.io.atomic import replacing

if TYPE_CHECKING:  # the vectors of a run are read without torch
    from torch import Tensor

HEX_DIGITS = 64
"""Length of a SHA-256 in text, with which the metadata of a file begins."""
_REMEDY = "The file was cut short or changed: restore a copy, or remove it and train again."


def save(path: Path, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Write tensors and JSON values to one file, with a hash of both."""
    from safetensors.torch import save as serialise

    tensors = {
        name: tensor.detach().cpu().contiguous().clone() for name, tensor in sorted(tensors.items())
    }
    text = json.dumps(values)
    # One metadata entry, since safetensors does not fix their order: the same content gives the
    # same bytes.
    content = serialise(tensors, metadata={"infomax": _digest(tensors, text) + text})
    with replacing(path) as temporary:
        # The writer of safetensors raises no OSError on a full disk.
        temporary.write_bytes(content)


def load(path: Path, framework: str = "pt") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save` wrote; raise InputError if the content does not match its hash.

    With framework "np" the tensors are numpy's arrays, and torch is not imported.
    """
    try:
        with safe_open(path, framework=framework) as file:
            metadata = (file.metadata() or {})["infomax"]
            tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
        digest, text = metadata[:HEX_DIGITS], metadata[HEX_DIGITS:]
        is_intact = digest == _digest(tensors, text)
        values = json.loads(text) if is_intact else {}
    except FileNotFoundError:
        raise InputError(str(path), "a file that infomax wrote", "no such file") from None
    except (
        SafetensorError,
        KeyError,
        OSError,
        RecursionError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        found = f"a damaged one ({error})"
        raise InputError(str(path), "a file that infomax wrote", found, _REMEDY) from None
    if not is_intact or not isinstance(values, dict):
        raise InputError(str(path), "the content its hash was made of", "other content", _REMEDY)
    return tensors, values


def _digest(tensors: dict[str, Any], text: str) -> str:
    """The SHA-256 of the text, and of name, dtype, shape and bytes of each tensor."""
    digest = hashlib.sha256(text.encode())
    for name, tensor in tensors.items():
        dtype = str(tensor.dtype).removeprefix("torch.")
        digest.update(f"{name} torch.{dtype} {list(tensor.shape)}\n".encode())
        flat = tensor.reshape(-1)
        if not isinstance(flat, np.ndarray):
            import torch

            # As bytes, since numpy may not have the tensor's dtype.
            flat = flat.view(torch.uint8).numpy()
        digest.update(flat.view(np.uint8).data)
    return digest.hexdigest()
