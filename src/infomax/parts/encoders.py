"""Encoders: from views of a graph to one vector per node, its patch representation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from infomax.errors import check_whole_number
from infomax.kernels.initialisation import glorot
from infomax.views import LayerView, View
from infomax.views.propagation import MEAN, NEIGHBOURS, SYMMETRIC, Rule


class Encoder(nn.Module):
    """Base class of encoders: a sequence of layers. Your own encoder defines `layer`.

    A layer may mix nodes only through the view: `DGI.transform` computes vectors in blocks of
    nodes, so a mean over the rows of H, for example, would be the mean of a block, unless the
    encoder is ``whole``.

    Shapes:
        in: views of ``[N, F]``
        out: ``[N, out_dim]`` per view
    """

    rule: Rule
    """The normalisation with which it pools."""
    depth: int
    out_dim: int
    whole: bool = False
    """Whether a layer needs the whole graph at once, in memory: a `WholeView`, whose ``edges`` attention reads."""

    def layer(self, k: int, view: LayerView, h: Tensor | None) -> Tensor:
        """Return the output of layer k, from 0, given h, the output of the layer before; None
        stands for the features.

        The view is that of layer k: its ``own`` and ``pooled`` read the features, too, in every
        layer.
        """
        raise NotImplementedError

    def linear(self, k: int, view: LayerView, h: Tensor | None) -> Tensor:
        """Return the output of layer k before bias and activation."""
        raise NotImplementedError

    def forward(self, *views: View) -> tuple[Tensor, ...]:
        """Return H of each view."""
        return tuple(self._through(self.depth, view) for view in views)

    def before_activation(self, *views: View) -> tuple[Tensor, ...]:
        """Return H of each view without the last bias and activation."""
        last = self.depth - 1
        return tuple(self.linear(last, view.at(last), self._through(last, view)) for view in views)

    def _through(self, layers: int, view: View) -> Any:
        h = None
        for k in range(layers):
            h = self.layer(k, view.at(k), h)
        return h


class GCN(Encoder):
    """One or more graph convolutions, ``H = PReLU(D^-1/2 Â D^-1/2 X Θ + b)``. For citation graphs."""

    rule: Rule = SYMMETRIC

    def __init__(
        self, in_dim: int, dim: int, *, layers: int = 1, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.depth, self.out_dim = check_whole_number("layers", layers, 1), dim
        self.weights = nn.ParameterList(
            glorot((dim if k else in_dim, dim), generator=generator) for k in range(layers)
        )
        self.biases, self.slopes = _activations(layers, dim)

    def layer(self, k: int, view: LayerView, h: Tensor | None) -> Tensor:
        """One convolution."""
        return view.backend.bias_prelu(self.biases[k], self.slopes[k], self.linear(k, view, h))

    def linear(self, k: int, view: LayerView, h: Tensor | None) -> Tensor:
        """P H Θ."""
        return view.pooled(h, self.weights[k])


class MeanPool(GCN):
    """As `GCN` with mean pooling, ``H = PReLU(D^-1 Â X Θ + b)``; it can be applied to graphs with other degrees."""

    rule: Rule = MEAN


class SkipMeanPool(Encoder):
    """Mean pooling with a skip connection, ``H = PReLU(X Θ' || D^-1 Â X Θ + b)``. For large graphs,
    in patches.

    Each side has ``dim`` features, so the vectors are ``2 dim`` wide.
    """

    rule: Rule = MEAN

    def __init__(
        self, in_dim: int, dim: int, *, layers: int = 3, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.depth, self.out_dim = check_whole_number("layers", layers, 1), 2 * dim
        widths = [in_dim] + [2 * dim] * (layers - 1)
        self.own = nn.ParameterList(glorot((width, dim), generator=generator) for width in widths)
        self.pooled = nn.ParameterList(
            glorot((width, dim), generator=generator) for width in widths
        )
        self.biases, self.slopes = _activations(layers, 2 * dim)

    def layer(self, k: int, view: LayerView, h: Tensor | None) -> Tensor:
        """The node itself and its neighbourhood, side by side."""
        return view.backend.bias_prelu(self.biases[k], self.slopes[k], *self._sides(k, view, h))

    def linear(self, k: int, view: LayerView, h: Tensor | None) -> Tensor:
        """H Θ' || P H Θ."""
        return torch.cat(self._sides(k, view, h), dim=1)

    def _sides(self, k: int, view: LayerView, h: Tensor | None) -> tuple[Tensor, Tensor]:
        return view.own(h, self.own[k]), view.pooled(h, self.pooled[k])


class DenseSkipMeanPool(MeanPool):
    """Three layers of mean pooling with dense skip connections. For many graphs.

    ``H1 = σ(MP1(X))``, ``H2 = σ(MP2(H1 + X W))``, ``H = σ(MP3(H2 + H1 + X W))``: each layer but the
    last adds its output to a running sum that starts as ``X W``, and the next layer reads that sum.
    """

    def __init__(self, in_dim: int, dim: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__(in_dim, dim, layers=3, generator=generator)
        self.skip = glorot((in_dim, dim), generator=generator)

    def layer(self, k: int, view: LayerView, h: Tensor | None) -> Tensor:
        """Return the running sum including this layer's output; for the last layer, only its output."""
        outcome = super().layer(k, view, h)
        if k == self.depth - 1:
            return outcome
        return outcome + (view.own(None, self.skip) if h is None else view.carry(h))


class TwoHops(Encoder):
    """The node itself beside two hops, ``H = PReLU(X Θ0 || P X Θ1 || P P X Θ2 Θ3 + b)``. For
    neighbours that differ.

    P is the mean over the neighbours without the node. Each side has ``dim`` features: the vectors
    are ``3 dim`` wide.
    """

    rule: Rule = NEIGHBOURS
    depth = 2

    def __init__(self, in_dim: int, dim: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.out_dim = 3 * dim
        widths = (in_dim, in_dim, in_dim, dim)
        self.weights = nn.ParameterList(
            glorot((width, dim), generator=generator) for width in widths
        )
        self.biases, self.slopes = _activations(1, 3 * dim)

    def layer(self, k: int, view: LayerView, h: Tensor | None) -> Tensor:
        """P X Θ2 without bias or activation; then all three sides."""
        out = self.linear(k, view, h)
        return view.backend.bias_prelu(self.biases[0], self.slopes[0], out) if k else out

    def linear(self, k: int, view: LayerView, h: Tensor | None) -> Tensor:
        """P X Θ2; then X Θ0 || P X Θ1 || P H Θ3."""
        own, near, far, further = self.weights
        if k == 0:
            return view.pooled(None, far)
        return torch.cat(
            [view.own(None, own), view.pooled(None, near), view.pooled(h, further)], dim=1
        )


class PathMean(Encoder):
    """For graphs of several types of nodes: one linear map per path, ``H = mean_p PReLU(R_1 R_2 ...
    X_p Θ_p + b_p)``.

    A path leads from the type of the nodes along relations to a type whose features it reads, X_p.
    Each R is the mean over the neighbours in one relation; `GCN` is the same with one type and one
    path, and self-loops.

    Args:
        in_dim: not used.
        dim: the width of the vectors.
        paths: the names of the paths, each with the number of features at its end; `DGI.fit` adds
        these numbers.
        hops: not used: the number of steps up to which paths were found.
        generator: for the initial weights.
    """

    depth = 1

    def __init__(
        self,
        in_dim: int,
        dim: int,
        *,
        paths: Mapping[str, int] | Sequence[str] | None = None,
        hops: int = 2,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        paths = paths if isinstance(paths, Mapping) else dict.fromkeys(paths or ("",), in_dim)
        self.rule = self.paths = tuple(paths)
        self.out_dim = dim
        self.weights = nn.ParameterList(
            glorot((width, dim), generator=generator) for width in paths.values()
        )
        self.biases, self.slopes = _activations(len(paths), dim)

    def layer(self, k: int, view: Any, h: Tensor | None) -> Tensor:
        """The mean over the paths."""
        parts = [
            view.pooled(None, weight, path)
            for path, weight in zip(self.paths, self.weights, strict=True)
        ]
        return view.backend.mean_prelu(self.biases, self.slopes, parts)  # type: ignore[no-any-return]


def _activations(layers: int, dim: int) -> tuple[nn.ParameterList, nn.ParameterList]:
    """Biases of zero and PReLU slopes of 0.25, one slope per layer."""
    biases = nn.ParameterList(torch.zeros(dim, dtype=torch.float32) for _ in range(layers))
    slopes = nn.ParameterList(torch.full((1,), 0.25, dtype=torch.float32) for _ in range(layers))
    return biases, slopes
