"""What every test may ask for; where a GPU may be seen; and a limit on the time of a test."""

from __future__ import annotations

import os
import random
from contextlib import nullcontext

if workers := int(
    os.environ.get("PYTEST_XDIST_WORKER_COUNT", 0)
):  # they share the cores; read when torch is imported
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import pytest
import torch
from sample_graphs import random_graph

from infomax import Graph

LIMIT = 300
"""Seconds that a test may take, where pytest-timeout is installed; one that hangs fails then."""


def pytest_configure(config: pytest.Config) -> None:
    """Hide the GPU from the tests and what they start: they expect a CPU. ``pytest -m gpu`` runs those that need it."""
    if config.option.markexpr != "gpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = (
            ""  # read when CUDA is first asked for, after torch is imported
        )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.pluginmanager.hasplugin("timeout"):
        for item in items:
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(LIMIT))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("there is no GPU")


SEED = int(os.environ.get("INFOMAX_TEST_SEED") or random.SystemRandom().randrange(2**32))


@pytest.fixture
def campaign_seed(pytestconfig: pytest.Config) -> int:
    """A seed for tests that draw other cases in each run. It is printed; INFOMAX_TEST_SEED repeats it."""
    message = f"INFOMAX_TEST_SEED={SEED}"
    print(message)  # shown with a failure, also of a test in another process
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        print(message, flush=True)
    return SEED


@pytest.fixture(scope="session")
def campaign_seconds() -> float:
    """Processor time that such a test may take; INFOMAX_TEST_SECONDS allows more."""
    return float(os.environ.get("INFOMAX_TEST_SECONDS") or 20)


@pytest.fixture
def graph() -> Graph:
    return random_graph()


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
