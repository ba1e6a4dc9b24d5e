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
"""By the name of a curve in the report, its title and unit."""
CONSTANT_SUMMARY = 0.01
"""The standard deviation of a summary's entries below which it is nearly constant."""


def health(report: dict[str, Any], vectors: NDArray[Any]) -> Chapter:
    """The chapter about the report of `infomax.training.health`, with the spectrum of vectors.

    Args:
        report: the report.
        vectors: ``[N, d]``.
    """
    spectrum = singular_values(vectors)
    if spectrum.max() > 0:
        spectrum = spectrum / spectrum.max()
    numbers = {**report, "singular_values": [float(f"{value:.6g}") for value in spectrum]}

    story = []
    if "loss" in report:
        story += _story_of_training(report)
    dimensions = format_count(report["dimensions"], "dimension")
    dead_dimensions = format_count(report["dead_dimensions"], "dimension")
    story.append(
        f"The vectors use {report['effective_rank']:.0f} of their {dimensions} (effective rank). "
        f"Dead, as they hardly vary between nodes: {dead_dimensions}. Dashed lines mark the epoch "
        "that was kept and the rank."
    )
    if "resemblance" in report:
        story.append(f"Features: {in_words(report['resemblance'])}. {MEANING}")
    return Chapter("health", "How the training went", story, numbers, partial(_draw, numbers))


def _story_of_training(report: dict[str, Any]) -> list[str]:
    """Paragraphs about the loss, the discriminator and the summary."""
    kept = "the last weights"
    if report["kept_epoch"] != report["epochs"]:
        kept = f"the weights of epoch {report['kept_epoch']:,}"
    course = (
        f"Training ran for {format_count(report['epochs'], 'epoch')} ({report['seconds']:.0f} s) "
        f"and kept {kept}. With these the loss is {report['loss']:.4f} (at first "
        f"{report['curve']['loss'][0]:.4f}; guessing gives {report['guessing_loss']:.4f}), and the "
        f"discriminator classifies {100 * report['discriminator_accuracy']:.1f} % of the patches "
        "correctly."
    )
    spread = report["summary_spread"]
    summary = f"The standard deviation of the summary's entries is {spread:.3f}."
    if spread < CONSTANT_SUMMARY:
        summary = (
            f"The standard deviation of the summary's entries is only {spread:.4f}: the summary is "
            "nearly constant, so the discriminator mostly separates real patches from corrupted "
            "ones and hardly compares a patch with its graph."
        )
    return [course, summary]


def _draw(numbers: dict[str, Any], stacked: bool) -> Any:
    curves = numbers.get("curve", {})
    figure, axes = panels(len(curves) + 1, stacked, height=3.4 if curves else 4.4)
    mark: dict[str, Any] = {
        "color": BASELINE,
        "linewidth": 1.4,
        "linestyle": DASHED,
        "zorder": 0,
    }
    for panel, (name, values) in zip(axes, curves.items(), strict=False):
        title, unit = CURVES[name]
        scale = 100 if "%" in unit else 1
        epochs = range(1, len(values) + 1)
        panel.plot(epochs, np.array(values) * scale, color=COLOURS[0])
        panel.axvline(numbers["kept_epoch"], **mark)
        panel.set(title=title, xlabel="epoch", ylabel=unit)

    # A logarithmic axis has no place for zeros.
    spectrum_panel = axes[-1]
    spectrum = np.array(numbers["singular_values"])
    is_positive = spectrum > 0
    directions = 1 + np.flatnonzero(is_positive)
    spectrum_panel.semilogy(directions, spectrum[is_positive], color=COLOURS[0])
    spectrum_panel.axvline(numbers["effective_rank"], **mark)
    labels = {"xlabel": "direction", "ylabel": "singular value (log axis)"}
    spectrum_panel.set(title="Spectrum", **labels)
    return figure
