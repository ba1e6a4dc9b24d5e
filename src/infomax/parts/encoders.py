"""Encoders E: from views of a graph to one vector per node, its patch representation h_i.

H = E(X, A), steps 2 and 3 of the paper. Equation (3) is `GCN`, Equation (4) `MeanPool`, the encoder
for Reddit `SkipMeanPool` and that for PPI `DenseSkipMeanPool`. An encoder does not see A: it asks
its view for products with the normalised adjacency matrix, P; see `LayerView` in views/view.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from infomax.errors import check_whole_number
from infomax.kernels.initialisation import glorot
from infomax.views import LayerView, View, WholeView
from infomax.views.propagation import MEAN, NEIGHBOURS, SYMMETRIC, Rule


class Encoder(nn.Module):
    """Base class of encoders: a sequence of layers. Your own encoder defines `layer`.

    A layer may mix nodes only through the view: `DGI.transform` computes vectors in blocks of
    nodes, so a mean over the rows of H, for example, would be the mean of a block, unless the
    encoder has ``needs_whole_graph``.

    Shapes:
        in: views of ``[N, F]``
        out: ``[N, out_dim]`` per view
    """

    rule: Rule
    """The normalisation of the adjacency matrix with which it pools."""
    depth: int
    """The number of layers."""
    out_dim: int
    """The width of the vectors."""
    needs_whole_graph: bool = False
    """Whether a layer needs the whole graph at once, in memory: a `WholeView`, whose ``edges``
    attention reads. Without it, the view of a layer has no edges and no number of nodes."""

    def layer(self, k: int, view: LayerView, h: Tensor | None) -> Tensor:
        """Return the output of layer k, from 0.

        Args:
            k: the number of the layer.
            view: the view of layer k. Its ``own`` and ``pooled`` can read the features in every
                layer, where None is passed for h.
            h: the output of the layer before; None in the first layer.
        """
        raise NotImplementedError

    def linear(self, k: int, view: LayerView, h: Tensor | None) -> Tensor:
        """Return the output of layer k before bias and activation."""
        raise NotImplementedError

    def forward(self, *views: View) -> tuple[Tensor, ...]:
        """Return H of each view."""
        return tuple(self._run_layers(self.depth, view) for view in views)

    def before_activation(self, *views: View) -> tuple[Tensor, ...]:
        """Return H of each view without the last bias and activation; the step in closed form
        (``fused.py``) goes on from here."""
        last = self.depth - 1
        results = []
        for view in views:
            h = self._run_layers(last, view)
            results.append(self.linear(last, self._layer_view(last, view), h))
        return tuple(results)

    def _run_layers(self, layer_count: int, view: View) -> Any:
        """The output of the first layers; None of no layer, which stands for the features."""
        h = None
        for k in range(layer_count):
            h = self.layer(k, self._layer_view(k, view), h)
        return h

    def _layer_view(self, k: int, view: View) -> LayerView:
        """The view of layer k, with edges only for an encoder that says that it needs them."""
        layer_view = view.at(k)
        if isinstance(layer_view, WholeView) and not self.needs_whole_graph:
            return layer_view.without_edges()
        return layer_view


class GCN(Encoder):
    """One or more graph convolutions, ``H = PReLU(D^-1/2 Â D^-1/2 X Θ + b)``, Equation (3). For
    citation graphs."""

    rule: Rule = SYMMETRIC

    def __init__(
        self, in_dim: int, dim: int, *, layers: int = 1, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.depth = check_whole_number("layers", layers, 1)
        self.out_dim = dim
        widths = [in_dim] + [dim] * (layers - 1)
        self.weights = nn.ParameterList(
            glorot((width, dim), generator=generator) for width in widths
        )
        self.biases, self.slopes = _activations(layers, dim)

    def layer(self, k: int, view: LayerView, h: Tensor | None) -> Tensor:
        """One convolution."""
        return view.backend.bias_prelu(self.biases[k], self.slopes[k], self.linear(k, view, h))

    def linear(self, k: int, view: LayerView, h: Tensor | None) -> Tensor:
        """P H Θ."""
        return view.pooled(h, self.weights[k])


class MeanPool(GCN):
    """As `GCN` with mean pooling, ``H = PReLU(D^-1 Â X Θ + b)``, Equation (4); can be applied to
    graphs with other degrees."""

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
        self.depth = check_whole_number("layers", layers, 1)
        self.out_dim = 2 * dim
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
        """Return the running sum including this layer's output; of the last layer, only its
        output."""
        output = super().layer(k, view, h)
        if k == self.depth - 1:
            return output
        running_sum = view.own(None, self.skip) if h is None else view.carry(h)
        return output + running_sum


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
        z = self.linear(k, view, h)
        if k == 0:
            return z
        return view.backend.bias_prelu(self.biases[0], self.slopes[0], z)

    def linear(self, k: int, view: LayerView, h: Tensor | None) -> Tensor:
        """P X Θ2; then X Θ0 || P X Θ1 || P H Θ3."""
        theta_0, theta_1, theta_2, theta_3 = self.weights
        if k == 0:
            return view.pooled(None, theta_2)
        sides = [view.own(None, theta_0), view.pooled(None, theta_1), view.pooled(h, theta_3)]
        return torch.cat(sides, dim=1)


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
        if isinstance(paths, Mapping):
            width_of_path = paths
        else:
            # The paper's graph has one path, whose name is empty.
            width_of_path = dict.fromkeys(paths or ("",), in_dim)
        self.paths = tuple(width_of_path)
        self.rule = self.paths
        self.out_dim = dim
        self.weights = nn.ParameterList(
            glorot((width, dim), generator=generator) for width in width_of_path.values()
        )
        self.biases, self.slopes = _activations(len(width_of_path), dim)

    def layer(self, k: int, view: Any, h: Tensor | None) -> Tensor:
        """The mean over the paths."""
        messages = [
            view.pooled(None, weight, path)
            for path, weight in zip(self.paths, self.weights, strict=True)
        ]
        return view.backend.mean_prelu(self.biases, self.slopes, messages)  # type: ignore[no-any-return]


def _activations(count: int, dim: int) -> tuple[nn.ParameterList, nn.ParameterList]:
    """Biases of zero and PReLU slopes of 0.25, for so many activations of this width."""
    biases = nn.ParameterList(torch.zeros(dim, dtype=torch.float32) for _ in range(count))
    slopes = nn.ParameterList(torch.full((1,), 0.25, dtype=torch.float32) for _ in range(count))
    return biases, slopes
