"""Train DGI with PyG from arrays, and write the vectors: what a user of PyG would type. For `benchmarks.felt`."""

from __future__ import annotations

import sys

import numpy as np
import torch
from torch import nn
from torch_geometric.nn import DeepGraphInfomax, GCNConv


class Encoder(nn.Module):
    """One graph convolution and a PReLU."""

    def __init__(self, in_dim: int, dim: int) -> None:
        super().__init__()
        self.convolve, self.activation = GCNConv(in_dim, dim, cached=True), nn.PReLU(dim)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """``[N, F] -> [N, d]``."""
        return self.activation(self.convolve(x, edge_index))


def main(source: str, out: str, epochs: str, device: str) -> None:
    """Train so many epochs on the arrays ``x`` and ``edge_index`` of an npz file."""
    arrays = np.load(source)
    x, edge_index = (torch.from_numpy(arrays[name]).to(device) for name in ("x", "edge_index"))
    model = DeepGraphInfomax(
        512,
        Encoder(x.shape[1], 512),
        summary=lambda h, *_: h.mean(dim=0).sigmoid(),
        corruption=lambda x, edge_index: (x[torch.randperm(len(x), device=x.device)], edge_index),
    ).to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.001)
    for _ in range(int(epochs)):
        optimiser.zero_grad()
        loss = model.loss(*model(x, edge_index))
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        np.save(out, model(x, edge_index)[0].cpu().numpy())


if __name__ == "__main__":
    main(*sys.argv[1:])
