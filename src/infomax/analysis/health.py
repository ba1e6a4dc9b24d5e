"""The curves of a training, and the spectrum of its vectors."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.analysis.report import Chapter
from infomax.analysis.style import BASELINE, COLOURS, DASHED, panels
from infomax.arrays.resemblance import MEANING, in_words
from infomax.errors import format_count
from infomax.evaluation.metrics import singular_values

CURVES = {
    "loss": ("Loss", "cross-entropy"),
    "discriminator_accuracy": ("Discriminator", "accuracy (%)"),
    "summary_spread": ("Summary", "spread of its entries"),
}


def health(report: dict[str, Any], vectors: NDArray[Any]) -> Chapter:
    """The chapter about the report of `infomax.training.health` and the spectrum of the vectors ``[N, d]``."""
    spectrum = singular_values(vectors)
    spectrum = spectrum / spectrum.max() if spectrum.max() > 0 else spectrum
    numbers = {**report, "singular_values": [float(f"{value:.6g}") for value in spectrum]}
    rank, dead, d = report["effective_rank"], report["dead_dimensions"], report["dimensions"]
    story = []
    if "loss" in report:
        spread, guessing = report["summary_spread"], report["guessing_loss"]
        kept = "the last weights"
        if report["kept_epoch"] != report["epochs"]:
            kept = f"the weights of epoch {report['kept_epoch']:,}"
        story += [
            f"Training ran for {format_count(report['epochs'], 'epoch')} ({report['seconds']:.0f} s) and kept {kept}. "
            f"With these the loss is {report['loss']:.4f} (at first "
            f"{report['curve']['loss'][0]:.4f}; guessing gives {guessing:.4f}), and the discriminator classifies "
            f"{100 * report['discriminator_accuracy']:.1f} % of the patches correctly.",
            f"The standard deviation of the summary's entries is only {spread:.4f}: the summary is nearly constant, so "
            "the discriminator mostly separates real patches from corrupted ones and hardly compares a patch with its "
            "graph."
            if spread < 0.01
            else f"The standard deviation of the summary's entries is {spread:.3f}.",
        ]
    story.append(
        f"The vectors use {rank:.0f} of their {format_count(d, 'dimension')} (effective rank). Dead, as they hardly vary "
        f"between nodes: {format_count(dead, 'dimension')}. Dashed lines mark the epoch that was kept and the rank."
    )
    if "resemblance" in report:
        story.append(f"Features: {in_words(report['resemblance'])}. {MEANING}")
    return Chapter("health", "How the training went", story, numbers, partial(_draw, numbers))


def _draw(numbers: dict[str, Any], stacked: bool) -> Any:
    curves = numbers.get("curve", {})
    figure, axes = panels(len(curves) + 1, stacked, height=3.4 if curves else 4.4)
    for panel, (name, values) in zip(axes, curves.items(), strict=False):
        title, unit = CURVES[name]
        panel.plot(
            range(1, len(values) + 1),
            np.array(values) * (100 if "%" in unit else 1),
            color=COLOURS[0],
        )
        panel.axvline(
            numbers["kept_epoch"], color=BASELINE, linewidth=1.4, linestyle=DASHED, zorder=0
        )
        panel.set(title=title, xlabel="epoch", ylabel=unit)
    spectrum = np.array(numbers["singular_values"])
    alive = spectrum > 0
    axes[-1].semilogy(1 + np.flatnonzero(alive), spectrum[alive], color=COLOURS[0])
    axes[-1].axvline(
        numbers["effective_rank"], color=BASELINE, linewidth=1.4, linestyle=DASHED, zorder=0
    )
    axes[-1].set(title="Spectrum", xlabel="direction", ylabel="singular value (log axis)")
    return figure
