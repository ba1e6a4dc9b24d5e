"""How many requests a second recipes/serve.py answers on this machine: python -m benchmarks.serve.

An encoder with its first weights, on a generated graph of 100,000 nodes with communities, is served by a process of its
own, on the loopback address. Threads with one connection each ask for the ten nearest of random nodes; then come
malformed requests. The growth is that of the memory of the server's process while it refuses them.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil

from infomax import DGI
from infomax.datasets.generated import REDDIT_NODES, read

WRONG = (
    ("GET", "/nodes/nobody", b""),
    ("GET", "/nodes/1/neighbours?k=0", b""),
    ("GET", "/nodes/1/neighbours?k=many", b""),
    ("PUT", "/nodes/1", b"{}"),
    ("POST", "/vectors", b"{"),
    ("POST", "/vectors", b"[" * 5000),
    ("POST", "/vectors", b"\xff"),
    ("POST", "/vectors", b'[{"features": [1], "neighbours": ["nobody"]}]'),
    ("POST", "/vectors", b'[{"features": [1e999, 2], "neighbours": {"1": -1}}]'),
    ("GET", "/" + "x" * 5000, b""),
)


def ask(port: int, requests: list[tuple[str, str, bytes]]) -> list[tuple[int, float]]:
    """The status and the seconds of each request, over one connection."""
    connection, out = http.client.HTTPConnection("127.0.0.1", port), []
    for method, path, body in requests:
        began = time.perf_counter()
        connection.request(
            method, path, body or None, {"content-type": "application/json"} if body else {}
        )
        answer = connection.getresponse()
        answer.read()
        out.append((answer.status, time.perf_counter() - began))
    return out


def many(
    port: int, requests: list[tuple[str, str, bytes]], threads: int
) -> tuple[list[tuple[int, float]], float]:
    """All answers, and the seconds that they took, from so many threads."""
    began = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        found = [
            one
            for part in pool.map(lambda at: ask(port, requests[at::threads]), range(threads))
            for one in part
        ]
    return found, time.perf_counter() - began


def main() -> None:
    """Serve, ask, and print one line of JSON."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nodes", type=int, default=100_000)
    options.add_argument("--dim", type=int, default=128)
    options.add_argument("--requests", type=int, default=5000)
    options.add_argument("--malformed", type=int, default=10_000)
    options.add_argument("--threads", type=int, default=4)
    given, rng = options.parse_args(), np.random.default_rng(0)
    n = given.nodes
    graph = read(n / REDDIT_NODES, features=64, degree=10).replace(splits={}, labels={})
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        DGI(given.dim, epochs=0, preset="whole-graph").fit(graph).save(Path(folder) / "run")
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        script = Path(__file__).parents[1] / "recipes/serve.py"
        server = subprocess.Popen(
            [sys.executable, str(script), f"{folder}/run", "--port", str(port)],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while True:
                try:
                    ask(port, [("GET", "/health", b"")])
                    break
                except OSError:
                    if server.poll() is not None:
                        raise
                    time.sleep(0.2)
            paths = [
                ("GET", f"/nodes/{node}/neighbours?k=10", b"")
                for node in rng.integers(0, n, given.requests)
            ]
            many(port, paths[:200], given.threads)
            process, clock = psutil.Process(server.pid), time.process_time()
            used = sum(process.cpu_times()[:2])
            found, seconds = many(port, paths, given.threads)
            used, clock = sum(process.cpu_times()[:2]) - used, time.process_time() - clock
            before = process.memory_info().rss
            wrong, _ = many(
                port, [WRONG[at % len(WRONG)] for at in range(given.malformed)], given.threads
            )
            grown = process.memory_info().rss - before
        finally:
            server.terminate()
            server.wait()
    times = np.array([took for _, took in found])
    told = {
        "nodes": n,
        "dim": given.dim,
        "threads": given.threads,
        "requests_per_second": round(len(found) / seconds),
    }
    told |= {
        "median_ms": round(1e3 * float(np.median(times)), 1),
        "p99_ms": round(1e3 * float(np.percentile(times, 99)), 1),
    }
    told |= {
        "server_cpu_ms": round(1e3 * used / len(found), 2),
        "client_cpu_ms": round(1e3 * clock / len(found), 2),
    }
    told |= {"answered": sum(status == 200 for status, _ in found), "malformed": len(wrong)}
    told |= {
        "statuses": sorted({status for status, _ in wrong}),
        "grown_mb": round(grown / 2**20, 1),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
