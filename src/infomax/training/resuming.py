"""Checkpoints of a training in its run folder: written at pauses, read to resume."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from infomax.errors import InputError, in_words
from infomax.graphs.graph import Graph
from infomax.io.json import to_json
from infomax.training import checkpoints, model_file, runs
from infomax.training.fingerprints import fingerprint as identify
from infomax.training.fingerprints import refuse_other
from infomax.training.loop import Training

CHECKPOINT_SECONDS = 20.0

Pause = Callable[[Training], None]


def resume(training: Training, graph: Graph, folder: Path, fingerprint: dict[str, str]) -> bool:
    """Continue from the checkpoint in a run folder, if there is one; raise InputError for that of another training."""
    checkpoint = folder / runs.CHECKPOINT
    if not checkpoint.exists():
        return False
    tensors, values = checkpoints.load(checkpoint)
    values.pop("preset", None)
    refuse_other(graph, checkpoint, values.pop("fingerprint", {}), fingerprint)
    try:
        training.restore(tensors, values)
    except (KeyError, RuntimeError) as error:  # a part of one's own has the same name, and other weights
        remedy = "Resume with the original parts, or choose another folder."
        raise InputError(str(checkpoint), "the weights of these parts", in_words(error), remedy) from error
    return True


def preset_begun(folder: Path) -> str:
    """Return the name of the preset that a run folder was begun with; "" where none was."""
    if (folder / runs.CHECKPOINT).exists():
        name = checkpoints.load(folder / runs.CHECKPOINT)[1].get("preset")
    elif (folder / runs.MODEL).exists():
        name = model_file.read(folder).config["settings"].get("preset")
    else:
        return ""
    if not isinstance(name, str) or not name:
        found = "none: it is one of your own"
        raise InputError(str(folder), "a run that names its preset", found, "Name it: --preset.")
    return name


def refuse_other_run(folder: Path, graph: Graph, settings: dict[str, Any], seed: int) -> None:
    """Raise InputError for a finished run of another graph or of other settings; the device may differ."""
    config = model_file.read(folder).config
    known = runs.read_training_graph(folder, graph.folder)
    found = identify(known, config["settings"], config["seed"], "")
    expected = identify(graph, settings, seed, "")
    refuse_other(graph, folder, found, expected, "a finished run")


def pausing(progress: Pause, folder: Path | None, fingerprint: dict[str, str], preset: str) -> Pause:
    """Return a function for `Training.run` that calls ``progress``; on the first rank it writes a log and checkpoints.

    A checkpoint holds the name of the preset and the fingerprint of the training.

    If ``progress`` raises KeyboardInterrupt on any rank, a checkpoint is written and all ranks stop after this step.
    """
    saved, logged = time.monotonic(), 0

    def log(training: Training) -> None:
        """Append the epochs that metrics.jsonl lacks; the first call of a training, also a resumed one, writes all."""
        nonlocal logged
        if folder is not None and training.ranks.rank == 0 and len(training.history) > logged:
            rows = enumerate(training.history[logged:], logged + 1)
            lines = [to_json({"epoch": epoch, **record._asdict()}) + "\n" for epoch, record in rows]
            with (folder / runs.METRICS).open("a" if logged else "w", encoding="utf-8") as file:
                file.writelines(lines)
            logged = len(training.history)

    def save(training: Training) -> None:
        nonlocal saved
        if folder is not None and training.ranks.rank == 0:
            tensors, values = training.state()
            values |= {"fingerprint": fingerprint, "preset": preset}
            checkpoints.save(folder / runs.CHECKPOINT, tensors, values)
        saved = time.monotonic()

    def pause(training: Training) -> None:
        interruption = None
        log(training)
        try:
            progress(training)
        except KeyboardInterrupt as interrupted:
            interruption = interrupted
        if training.ranks.any(interruption is not None):
            save(training)
            raise interruption or KeyboardInterrupt("stopped on another rank")
        if time.monotonic() - saved > CHECKPOINT_SECONDS:
            save(training)

    return pause
