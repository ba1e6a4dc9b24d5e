"""Tensors and JSON values in one safetensors file, written whole or not at all, with a hash of its content."""

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


def save(path: Path, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Write tensors and JSON values to one file, which appears whole or not at all."""
    from safetensors.torch import save as serialise

    tensors = {
        name: tensor.detach().cpu().contiguous().clone() for name, tensor in sorted(tensors.items())
    }
    text = json.dumps(values)
    # One metadata entry, since safetensors does not fix their order: the same content gives the same bytes.
    content = serialise(tensors, metadata={"infomax": _digest(tensors, text) + text})
    with replacing(path) as temporary:
        temporary.write_bytes(content)  # safetensors' own writer raises no OSError on a full disk


def load(path: Path, framework: str = "pt") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save` wrote; raise InputError if the content does not match its hash.

    With framework "np" the tensors are numpy's arrays, and torch is not imported.
    """
    try:
        with safe_open(path, framework=framework) as file:
            entry = (file.metadata() or {})["infomax"]
            tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
        digest, text = entry[:64], entry[64:]
        intact = digest == _digest(tensors, text)
        values = json.loads(text) if intact else {}
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
        raise InputError(
            str(path), "a file that infomax wrote", f"a damaged one ({error})", _REMEDY
        ) from None
    if not intact or not isinstance(values, dict):
        raise InputError(str(path), "the content its hash was made of", "other content", _REMEDY)
    return tensors, values


_REMEDY = "The file was cut short or changed: restore a copy, or remove it and train again."


def _digest(tensors: dict[str, Any], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name, tensor in tensors.items():
        kind = str(tensor.dtype).removeprefix("torch.")
        digest.update(f"{name} torch.{kind} {list(tensor.shape)}\n".encode())
        flat = tensor.reshape(-1)
        if not isinstance(flat, np.ndarray):
            import torch

            flat = flat.view(torch.uint8).numpy()  # numpy may not have its type
        digest.update(flat.view(np.uint8).data)
    return digest.hexdigest()
