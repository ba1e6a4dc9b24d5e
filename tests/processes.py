"""Processes with the variables of torchrun, for tests: started by a server that has imported torch already."""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Callable, Sequence
from datetime import timedelta
from socket import socket
from typing import Any

Task = tuple[Callable[..., Any], tuple[Any, ...]]


def in_processes(count: int, tasks: Sequence[Task], *, group: bool = True) -> list[list[Any]]:
    """Call functions on ranks 0 to count - 1; returns for each function the result, or the traceback, of each rank.

    With ``group``, the ranks are a process group already.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["infomax.estimator", "infomax.cli"])
    pipes = [context.Pipe(duplex=False) for _ in range(count)]
    with socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    variables = {
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": port,
        "WORLD_SIZE": count,
        "LOCAL_WORLD_SIZE": count,
    }
    processes = [
        context.Process(
            target=_work,
            args=(variables | {"RANK": rank, "LOCAL_RANK": rank}, tasks, group, sender),
        )
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


def _work(variables: dict[str, Any], tasks: Sequence[Task], group: bool, sender: Any) -> None:
    import torch
    from torch import distributed

    torch.set_num_threads(1)  # more threads than cores would wait for each other
    os.environ |= {name: str(value) for name, value in variables.items()}
    if group:
        distributed.init_process_group("gloo", timeout=timedelta(seconds=60))
    results = []
    for function, arguments in tasks:
        try:
            results.append(function(*arguments))
        except BaseException:  # the traceback is the result
            results.append(traceback.format_exc())
    sender.send(results)
