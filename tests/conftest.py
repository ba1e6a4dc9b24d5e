"""What every test may ask for."""

from __future__ import annotations

import pytest
import torch
from sample_graphs import random_graph

from infomax import Graph


@pytest.fixture
def graph() -> Graph:
    return random_graph()


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
