"""Too little memory is one message and exit code 2; the report names the memory of the process and of the GPU."""

from __future__ import annotations

import errno
import os

import pytest
from shell import infomax, refused

from infomax import cli
from infomax.cli import show

REPORT = {
    "epochs": 0,
    "kept_epoch": 0,
    "effective_rank": 3.0,
    "dimensions": 4,
    "dead_dimensions": 0,
    "seconds": 1.0,
    "peak_memory_bytes": 2_000_000_000,
}


def fails_with(error, monkeypatch):
    def fail(*words, **settings):
        raise error

    monkeypatch.setattr(cli, "app", fail)
    return infomax("train")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "MemoryError"),
        (
            MemoryError("Unable to allocate 384. KiB for an array"),
            "Unable to allocate 384. KiB for an array",
        ),
        (
            ImportError("libtorch_cpu.so: failed to map segment from shared object"),
            "libtorch_cpu.so: failed to map",
        ),
        (
            OSError("libllvmlite.so: failed to map segment from shared object"),
            "libllvmlite.so: failed to map",
        ),
        (OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)), "Cannot allocate memory"),
        (
            RuntimeError("DefaultCPUAllocator: not enough memory: you tried\nmore"),
            "not enough memory: you tried)",
        ),
        (
            RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB."),
            "Tried to allocate 20.00 GiB",
        ),
        (RuntimeError("can't start new thread"), "can't start new thread"),
    ],
    ids=str,
)
def test_used_up_memory_is_one_message_with_the_reason(error, words, monkeypatch):
    refused(
        fails_with(error, monkeypatch),
        "memory: expected enough for this command",
        words,
        "allow more memory",
    )


def test_an_error_of_the_system_keeps_its_reason(monkeypatch):
    refused(
        fails_with(OSError("the disk speaks in riddles"), monkeypatch),
        "infomax: the disk speaks in riddles",
    )


@pytest.mark.parametrize(
    "error", [RuntimeError("shapes differ"), ImportError("No module named 'numbat'")], ids=str
)
def test_an_error_of_the_program_keeps_its_traceback(error, monkeypatch):
    with pytest.raises(type(error), match=str(error)):
        fails_with(error, monkeypatch)


def test_the_memory_of_process_and_gpu_have_names_of_their_own(capsys):
    show.health(REPORT)
    assert "GPU" not in capsys.readouterr().out
    show.health(REPORT | {"peak_gpu_memory_bytes": 7_000_000_000})
    lines = [
        line.split("│")[1:3] for line in capsys.readouterr().out.splitlines() if "peak" in line
    ]
    assert [[cell.strip() for cell in line] for line in lines] == [
        ["peak memory of the process", "2.0 GB"],
        ["peak memory on the GPU", "7.0 GB"],
    ]
