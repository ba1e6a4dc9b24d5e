"""A run folder has one writer at a time, and its files belong together or are refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import filelock
import numpy as np
import pytest
from sample_graphs import random_graph

from infomax import DGI, InputError
from infomax.io.atomic import locked
from infomax.training import checkpoints, runs


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    DGI(dim=4, epochs=1, scale="columns").fit(random_graph(dense=True), run=folder)
    return folder


@pytest.fixture
def run(finished, tmp_path):
    """A copy that may be damaged."""
    return shutil.copytree(finished, tmp_path / "run")


def edit(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def forge(run: Path, change) -> None:
    """Change the settings and make the model agree with them, as only a crafted folder does."""
    config = json.loads((run / runs.CONFIG).read_text())
    change(config)
    (run / runs.CONFIG).write_text(json.dumps(config))
    tensors, values = checkpoints.load(run / runs.MODEL)
    checkpoints.save(run / runs.MODEL, tensors, values | {"config": runs.config_hash(config)})


class TestOneWriter:
    def test_a_second_training_into_the_folder_is_refused_and_the_first_ends_well(
        self, tmp_path, graph
    ):
        refusals = []

        def second(training):
            with pytest.raises(
                InputError, match="a place that no other process is writing"
            ) as caught:
                DGI(dim=8, epochs=1, seed=1).fit(graph, run=tmp_path / "run")
            refusals.append(caught.value.where)

        first = DGI(dim=4, epochs=2).fit(graph, run=tmp_path / "run", progress=second)
        assert set(refusals) == {str(tmp_path / "run")}
        loaded = DGI.load(tmp_path / "run")
        np.testing.assert_array_equal(
            loaded.transform(graph).vectors, first.transform(graph).vectors
        )
        assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
            "README.md", "config.json", "graph.npz", "health.json", "metrics.jsonl", "model.safetensors",
            "positions.npy", "vectors.npy",
        ]  # fmt: skip

    def test_saving_over_a_training_is_refused(self, tmp_path, graph):
        model = DGI(dim=4, epochs=0).fit(graph)
        with runs.locked(tmp_path), pytest.raises(InputError, match="no other process is writing"):
            model.save(tmp_path, overwrite=True)

    def test_a_killed_process_leaves_a_folder_that_can_be_locked(self, tmp_path):
        script = (
            "import sys; from pathlib import Path; from infomax.io.atomic import locked\n"
            "with locked(Path(sys.argv[1]), Path()): print('held', flush=True); sys.stdin.read()"
        )
        lock = tmp_path / ".lock"
        command = [sys.executable, "-c", script, str(lock)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            assert holder.stdout.readline() == b"held\n"
            with (
                pytest.raises(InputError, match="no other process is writing"),
                locked(lock, tmp_path),
            ):
                pytest.fail("held by two")
            holder.kill()
        with locked(lock, tmp_path):
            assert lock.exists()
        assert not lock.exists()

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows removes the file on release")
    def test_the_lock_file_is_removed_while_it_is_held(self, tmp_path, monkeypatch):
        """After the release it could be the file of the next process, which would then keep nobody out."""
        lock, there, release = tmp_path / ".lock", [], filelock.FileLock.release

        def watched(self, *arguments, **options):
            there.append(lock.exists())
            release(self, *arguments, **options)

        monkeypatch.setattr(filelock.FileLock, "release", watched)
        with locked(lock, tmp_path):
            assert lock.exists()
        assert there[:1] == [False]

    def test_a_training_that_is_refused_leaves_no_folder(self, tmp_path, graph):
        with pytest.raises(InputError, match="dim"):
            DGI(dim=0).fit(graph, run=tmp_path / "deep" / "run")
        assert list(tmp_path.iterdir()) == []

    def test_temporary_files_of_a_killed_training_are_removed(self, tmp_path, graph):
        left = [tmp_path / f".{stem}-tmp-0123abcd-1-89abcdef{suffix}" for stem, suffix in (
            ("graph", ".npz"), ("config", ".json"), ("checkpoint", ".safetensors"), ("model", ".safetensors"),
        )]  # fmt: skip
        kept = [tmp_path / name for name in (".graph.npz", ".notes-tmp-0123abcd-1-89abcdef.txt")]
        for path in (*left, *kept):
            path.write_text("half")
        DGI(dim=4, epochs=1).fit(graph, run=tmp_path)
        assert [path for path in left if path.exists()] == []
        assert all(path.exists() for path in kept)


UNSHOWN = r"health\.json: expected the report on a training, found one that cannot be shown"


class TestFilesBelongTogether:
    @pytest.mark.parametrize("name", ["graph.npz", "config.json"])
    def test_a_file_of_another_run_is_refused(self, run, tmp_path, name):
        other = tmp_path / "other"
        DGI(dim=4, epochs=1, seed=1).fit(random_graph(dense=True, seed=8), run=other)
        shutil.copy(other / name, run)
        with pytest.raises(InputError, match=f"{name}: expected the (graph|settings) that"):
            DGI.load(run)

    def test_a_graph_with_other_labels_is_another_graph(self, run, tmp_path):
        from infomax.io.npz import read_npz, write_npz

        graph = read_npz(run / runs.GRAPH)
        graph.labels["kind"] = np.zeros(graph.num_nodes, dtype=int)
        write_npz(graph, run / runs.GRAPH)
        with pytest.raises(InputError, match=r"graph\.npz: expected the graph that"):
            DGI.load(run)

    def test_versions_and_device_may_change(self, run):
        edit(run / runs.CONFIG, versions=["odd"], device="cuda:7")
        assert DGI.load(run).preset_.dim == 4

    def test_another_format_is_told_with_its_version(self, run):
        edit(run / runs.CONFIG, format=99)
        with pytest.raises(InputError, match="expected format 5, found format 99"):
            DGI.load(run)

    @pytest.mark.parametrize(
        "content",
        ["[" * 100_000, '{"a":' * 100_000, "[]", "\x00", '{"format": 5}', "{}"],
        ids=lambda text: text[:6],
    )
    def test_a_config_that_is_none(self, run, content):
        (run / runs.CONFIG).write_text(content)
        with pytest.raises(InputError, match=r"config\.json: expected"):
            DGI.load(run)

    @pytest.mark.parametrize(
        ("change", "found"),
        [
            (
                lambda c: c["settings"]["encoder"].update(depth=2),
                "the settings of the model in the run",
            ),
            (
                lambda c: c["settings"]["encoder"].pop("part"),
                "the settings of the model in the run",
            ),
            (
                lambda c: c["settings"].update(encoder={"part": "os.system"}),
                "expected a part of infomax",
            ),
            (lambda c: c["settings"].update(encoder=[]), "the settings of the model in the run"),
            (lambda c: c["settings"].update(more=1), "the settings of the model in the run"),
            (lambda c: c.update(settings=[]), "the settings of the model in the run"),
            (lambda c: c.pop("settings"), "the settings of the model in the run"),
            (lambda c: c.pop("seed"), "the settings of the model in the run"),
            (lambda c: c.update(graph=[]), "the settings of the model in the run"),
        ],
    )
    def test_a_crafted_config_is_refused(self, run, change, found):
        forge(run, change)
        with pytest.raises(InputError, match=found):
            DGI.load(run)

    @pytest.mark.parametrize("report", [{}, {"epochs": "many"}], ids=str)
    def test_a_report_without_its_numbers_is_refused(self, run, report):
        (run / runs.HEALTH).write_text(json.dumps(report))
        with pytest.raises(InputError, match=UNSHOWN):
            DGI.load(run)

    @pytest.mark.parametrize(
        "verdict",
        [None, "good", {}, {"verdict": "weak", "reason": "", "causes": ["a"], "next": []}],
    )
    def test_a_report_without_its_verdict_is_refused(self, run, verdict):
        edit(run / runs.HEALTH, verdict=verdict)
        with pytest.raises(InputError, match=UNSHOWN):
            DGI.load(run)

    def test_a_missing_graph_is_told(self, run):
        (run / runs.GRAPH).unlink()
        with pytest.raises(
            InputError, match=r"graph\.npz: expected the graph of the run, found no such file"
        ):
            DGI.load(run)
