"""Processes that form a torch process group, for tests: started by a server that has imported torch already."""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

Task = tuple[Callable[..., Any], tuple[Any, ...]]


def in_processes(count: int, place: Path, tasks: Sequence[Task], *, group: bool = True) -> list[list[Any]]:
    """Call functions on ranks 0 to count - 1; returns for each function the result, or the traceback, of each rank."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["infomax.estimator", "infomax.cli"])
    pipes = [context.Pipe(duplex=False) for _ in range(count)]
    processes = [
        context.Process(target=_work, args=(rank, count, place / "store", tasks, group, sender))
        for rank, (_, sender) in enumerate(pipes)
    ]
    for process, (_, sender) in zip(processes, pipes, strict=True):
        process.start()
        sender.close()
    try:
        return list(zip(*[receiver.recv() for receiver, _ in pipes], strict=True))
    finally:
        for process in processes:
            process.kill()
            process.join()


def _work(rank: int, count: int, store: Path, tasks: Sequence[Task], group: bool, sender: Any) -> None:
    import torch
    from torch import distributed

    torch.set_num_threads(1)  # more threads than cores would wait for each other
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count)}
    if group:
        wait = timedelta(seconds=30)
        distributed.init_process_group("gloo", f"file://{store}", wait, count, rank)
    results = []
    for function, arguments in tasks:
        try:
            results.append(function(*arguments))
        except BaseException:  # the traceback is the result
            results.append(traceback.format_exc())
    sender.send(results)
