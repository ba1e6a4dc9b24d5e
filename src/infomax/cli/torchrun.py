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

MEETING_KEY = "infomax/meeting"
"""Under this key of the store rank 0 announces the name of an attempt."""
ENVIRONMENT = ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun tells each process, beside WORLD_SIZE."""
LONGEST_WAIT = timedelta(minutes=10)
"""How long a process waits for the others.

The death of another process is noticed at once, but not that of its host.
"""


def started() -> bool:
    """Whether torchrun, or what sets the same variables, has started several processes."""
    process_count = int(os.environ.get("WORLD_SIZE", "1"))
    return process_count > 1 and all(name in os.environ for name in ENVIRONMENT)


def is_first_on_host() -> bool:
    """Whether this process is the only one, or the first on its host."""
    return not started() or os.environ["LOCAL_RANK"] == "0"


@contextmanager
def joined(device: str, longest_wait: timedelta = LONGEST_WAIT) -> Iterator[Ranks]:
    """Form a process group of all processes that torchrun has started; without torchrun, of one.

    Only rank 0 prints. Every process gets its share of the cores, and the GPU with its local
    number.

    Args:
        device: the device that a person named.
        longest_wait: how long a process waits for the others.
    """
    from infomax.kernels.ranks import ALONE, Ranks

    if not started():
        yield ALONE
        return

    import torch
    from torch import distributed
    from torch.distributed.rendezvous import rendezvous

    gpu_count = torch.cuda.device_count() if device != "cpu" else 0
    _share_cores(torch)
    store, rank, rank_count = next(rendezvous("env://", timeout=longest_wait))
    attempt = _meet(store, rank, rank_count, longest_wait)
    distributed.init_process_group(
        "cpu:gloo,cuda:nccl" if gpu_count else "gloo",
        store=distributed.PrefixStore(attempt, store),  # type: ignore[attr-defined]
        rank=rank,
        world_size=rank_count,
        timeout=longest_wait,
    )
    show.hush(rank > 0)
    try:
        ranks = Ranks.current()
        # Where one rank cannot have a GPU, all ranks end with its message.
        with ranks.together():
            _choose_gpu(torch, device, gpu_count)
        yield ranks
    except RuntimeError as error:
        # Any other RuntimeError comes from the command itself.
        is_lost_rank = "gloo" in str(error) or isinstance(error, distributed.DistError)
        if not is_lost_rank:
            raise
        message = f"infomax: rank {rank} of {rank_count} has lost another rank, and ends too"
        print(message, file=sys.stderr, flush=True)
        raise SystemExit(1) from error
    distributed.destroy_process_group()


def _meet(store: Any, rank: int, rank_count: int, longest_wait: timedelta) -> str:
    """Agree on a new name for this attempt, which becomes the prefix of all keys in the store.

    After a restart, torchrun's store still has the keys of the attempt before, and the number of
    restarts may differ between hosts. So rank 0 announces a new name and answers each rank that has
    read it; a rank that has read the name of an earlier attempt gets no answer and reads again.
    """
    from torch.distributed import DistStoreError

    own_name = uuid4().hex
    if rank == 0:
        store.set(MEETING_KEY, own_name)
        for other_rank in range(1, rank_count):
            name_of_other = store.get(f"{own_name}/{other_rank}").decode()
            store.set(f"{own_name}/{name_of_other}", "welcome")
        return own_name

    deadline = time.monotonic() + longest_wait.total_seconds()
    while time.monotonic() < deadline:
        announced_name = store.get(MEETING_KEY).decode()
        store.set(f"{announced_name}/{rank}", own_name)
        try:
            store.wait([f"{announced_name}/{own_name}"], timedelta(seconds=1))
        except DistStoreError:
            continue
        return str(announced_name)
    found = f"none in {longest_wait}"
    raise InputError(f"rank {rank}", "an answer from rank 0", found, "See the messages of rank 0.")


def _share_cores(torch: Any) -> None:
    """Give each process of this host the same number of threads, unless the user has set one."""
    # torchrun sets OMP_NUM_THREADS to 1 where nobody has set it.
    if os.environ.get("OMP_NUM_THREADS", "1") != "1":
        return
    if hasattr(os, "sched_getaffinity"):
        core_count = len(os.sched_getaffinity(0))
    else:
        core_count = os.cpu_count() or 1
    processes_on_host = int(os.environ["LOCAL_WORLD_SIZE"])
    torch.set_num_threads(max(1, core_count // processes_on_host))


def _choose_gpu(torch: Any, device: str, gpu_count: int) -> None:
    """Compute on the GPU with the local number of this process."""
    if device not in ("auto", "cpu", "cuda"):
        raise InputError("--device", "auto, cpu or cuda with several processes", device)
    if not gpu_count:
        return
    processes_on_host = int(os.environ["LOCAL_WORLD_SIZE"])
    if processes_on_host > gpu_count:
        expected = f"{processes_on_host} GPUs, one for each process on this host"
        remedy = f"Use --nproc-per-node={gpu_count}, or --device cpu."
        raise InputError("torchrun", expected, str(gpu_count), remedy)
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
