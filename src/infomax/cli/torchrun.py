"""Join the processes that torchrun has started, so that they share the work of one command."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from infomax.cli import show
from infomax.errors import InputError

if TYPE_CHECKING:
    from infomax.kernels.ranks import Ranks

MEETING = "infomax/meeting"
VARIABLES = ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
WAIT = timedelta(minutes=10)
"""How long a process waits for the others. The death of another is noticed at once, but not that of its host."""


def started() -> bool:
    """Whether torchrun, or whoever sets its variables, has started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and all(
        name in os.environ for name in VARIABLES
    )


def first_here() -> bool:
    """Whether this process is the only one, or the first on its host."""
    return not started() or os.environ["LOCAL_RANK"] == "0"


@contextmanager
def joined(device: str, wait: timedelta = WAIT) -> Iterator[Ranks]:
    """Form a process group of all processes that torchrun has started; without torchrun, do nothing.

    Only rank 0 prints. Every process gets its share of the cores, and the GPU with its local number.
    """
    from infomax.kernels.ranks import ALONE, Ranks

    if not started():
        yield ALONE
        return
    import torch
    from torch import distributed
    from torch.distributed.rendezvous import rendezvous

    gpus = torch.cuda.device_count() if device != "cpu" else 0
    _share_cores(torch)
    store, rank, count = next(rendezvous("env://", timeout=wait))
    backend = "cpu:gloo,cuda:nccl" if gpus else "gloo"
    store = distributed.PrefixStore(_meet(store, rank, count, wait), store)  # type: ignore[attr-defined]
    distributed.init_process_group(backend, store=store, rank=rank, world_size=count, timeout=wait)
    show.hush(rank > 0)
    try:
        ranks = Ranks.current()
        with ranks.together():
            _choose_gpu(torch, device, gpus)
        yield ranks
    except RuntimeError as error:
        if "gloo" not in str(error) and not isinstance(error, distributed.DistError):
            raise
        print(
            f"infomax: rank {rank} of {count} has lost another rank, and ends too",
            file=sys.stderr,
            flush=True,
        )
        raise SystemExit(1) from error
    distributed.destroy_process_group()


def _meet(store: Any, rank: int, count: int, wait: timedelta) -> str:
    """Agree on a new name for this attempt; it is the prefix of all keys in the store.

    After a restart, torchrun's store still has the keys of the attempt before, and the number of restarts may differ
    between hosts. So rank 0 announces a new name and answers each rank that has read it; a rank that has read the name
    of an earlier attempt gets no answer and reads again.
    """
    from torch.distributed import DistStoreError

    name = uuid4().hex
    if rank == 0:
        store.set(MEETING, name)
        for other in range(1, count):
            store.set(f"{name}/{store.get(f'{name}/{other}').decode()}", "welcome")
        return name
    until = time.monotonic() + wait.total_seconds()
    while time.monotonic() < until:
        announced = store.get(MEETING).decode()
        store.set(f"{announced}/{rank}", name)
        try:
            store.wait([f"{announced}/{name}"], timedelta(seconds=1))
        except DistStoreError:
            continue
        return str(announced)
    raise InputError(
        f"rank {rank}", "an answer from rank 0", f"none in {wait}", "See the messages of rank 0."
    )


def _share_cores(torch: Any) -> None:
    """Give each process of this host the same number of threads, unless OMP_NUM_THREADS says otherwise."""
    if os.environ.get("OMP_NUM_THREADS", "1") == "1":  # torchrun sets 1 where nobody has set it
        cores = (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
        torch.set_num_threads(max(1, cores // int(os.environ["LOCAL_WORLD_SIZE"])))


def _choose_gpu(torch: Any, device: str, gpus: int) -> None:
    """Compute on the GPU with the local number of this process."""
    if device not in ("auto", "cpu", "cuda"):
        raise InputError("--device", "auto, cpu or cuda with several processes", device)
    if gpus:
        here = int(os.environ["LOCAL_WORLD_SIZE"])
        if here > gpus:
            remedy = f"Use --nproc-per-node={gpus}, or --device cpu."
            raise InputError(
                "torchrun", f"{here} GPUs, one for each process on this host", str(gpus), remedy
            )
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
