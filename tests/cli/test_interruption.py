"""A training that is stopped, by its user or by the machine, goes on; one that has ended is never written over."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest
from shell import infomax, refused, write_graph

from infomax import cli
from infomax.cli import show

MODEL, CHECKPOINT = "model.safetensors", "checkpoint.safetensors"
EPOCHS = 400

HELD = """
import signal, time
from infomax.cli import main
from infomax.training.loop import Training

step = Training.step

def held(self, batch, last):
    step(self, batch, last)
    while len(self.history) == 20 and signal.getsignal(signal.SIGINT) is not signal.SIG_DFL:
        time.sleep(0.01)

Training.step = held
main()
"""
"""A command that waits for a Ctrl-C after 20 epochs."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_graph(tmp_path_factory.mktemp("graph") / "small")


def words(folder, run, *more):
    return [
        "train",
        folder,
        "--labels",
        "kind",
        "--dim",
        4,
        "--epochs",
        EPOCHS,
        "--out",
        run,
        *more,
    ]


def start(*typed, script=()):
    """The command in a process of its own, which signals may hit."""
    command = [sys.executable, *(script or ("-m", "infomax")), *map(str, typed)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def whole(folder, tmp_path_factory):
    """The model of a training that nothing interrupted."""
    run = tmp_path_factory.mktemp("runs") / "whole"
    assert infomax(*words(folder, run)).code == 0
    return (run / MODEL).read_bytes()


def test_interrupted_then_killed_then_resumed_ends_in_the_same_bytes(folder, whole, tmp_path):
    run = tmp_path / "run"
    began = time.monotonic()
    first = start(*words(folder, run), script=("-c", HELD))
    while not (run / "config.json").exists():  # the last thing written before the first epoch
        assert first.poll() is None, first.stderr.read()
        time.sleep(0.01)
    until_training = time.monotonic() - began
    first.send_signal(signal.SIGINT)
    out, err = first.communicate(timeout=60)
    assert first.returncode == 130, err
    assert "Traceback" not in err
    assert "infomax: stopped after epoch" in err
    assert int(err.split("after epoch ")[1].split(".")[0]) <= 21
    assert "--resume" in err
    assert out == ""
    assert (run / CHECKPOINT).exists()
    assert not (run / MODEL).exists()

    refused(infomax(*words(folder, run)), str(run), "an unfinished training", "--resume")
    refused(infomax("embed", run, "--out", tmp_path / "v.npy"), "a finished run", "--resume")
    refused(
        infomax(*words(folder, run, "--resume", "--seed", 1)),
        "a checkpoint of seed 1",
        "one of seed 0",
    )

    second = start(*words(folder, run, "--resume"))
    delay = (
        random.uniform(0.2, 1.2) * until_training
    )  # any moment will do: before the training, in it, even after it
    with suppress(subprocess.TimeoutExpired):
        second.wait(timeout=delay)
    second.kill()
    _, err = second.communicate()
    assert "infomax: " not in err
    assert "Traceback" not in err
    assert infomax(*words(folder, run, "--resume")).code == 0
    assert (run / MODEL).read_bytes() == whole, f"killed after {delay} s"
    assert not (run / CHECKPOINT).exists()


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_what_follows_the_last_epoch_is_stopped_at_once(folder, whole, tmp_path, name, code):
    """Of a large graph, positions take longer than the training."""
    script = """
import time
from infomax.cli import main
from infomax.estimator import fitting

def held(self, *_):
    print("holding", flush=True)
    time.sleep(60)
    raise SystemExit("not stopped")

fitting.fit_vectors = held
main()
"""
    run = tmp_path / "run"
    first = start(*words(folder, run), script=("-c", script))
    assert first.stdout.readline() == "holding\n"
    first.send_signal(getattr(signal, name))
    _, err = first.communicate(timeout=50)
    assert first.returncode == code, err
    assert "Traceback" not in err
    assert "infomax: stopped after the training" in err
    assert "--resume" in err
    assert not (run / MODEL).exists()
    assert infomax(*words(folder, run, "--resume")).code == 0
    assert (run / MODEL).read_bytes() == whole


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_terminated_command_leaves_no_half_written_file(folder, tmp_path, name, code):
    if not hasattr(signal, name):
        pytest.skip(f"needs {name}")
    run, place = tmp_path / "run", tmp_path / "place"
    place.mkdir()
    assert infomax(*words(folder, run, "--epochs", 1)).code == 0
    script = f"""
import os, signal
from infomax.cli import main
signal.signal(signal.{name}, signal.SIG_DFL)  # nohup may have started the tests
os.fsync = lambda file: os.kill(os.getpid(), signal.{name})  # while the hidden file is there
main()
"""
    command = [sys.executable, "-c", script, "embed", run, "--out", place / "v.csv"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", "")
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("harm", ["truncated", "flipped"])
def test_a_damaged_checkpoint_is_refused(folder, tmp_path, harm, monkeypatch):
    from infomax.training import model_file, resuming

    monkeypatch.setattr(resuming, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(
        model_file, "finish", lambda *_: None
    )  # as if killed just before the model is written
    assert infomax(*words(folder, tmp_path / "run", "--epochs", 3)).code == 0
    monkeypatch.undo()
    path = tmp_path / "run" / CHECKPOINT
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content if harm == "flipped" else content[:-7])
    refused(
        infomax(*words(folder, tmp_path / "run", "--epochs", 3, "--resume")), CHECKPOINT, "changed"
    )
    assert not (tmp_path / "run" / MODEL).exists()


def test_resume_starts_where_there_is_nothing_and_leaves_alone_what_has_ended(folder, tmp_path):
    run = tmp_path / "run"
    assert infomax(*words(folder, run, "--epochs", 2, "--resume")).code == 0
    model, changed = (run / MODEL).read_bytes(), (run / MODEL).stat().st_mtime_ns
    again = infomax(*words(folder, run, "--epochs", 2, "--resume"))
    assert again.code == 0
    assert "finished run already" in again.out
    refused(infomax(*words(folder, run, "--epochs", 2)), str(run), "a trained model")
    assert (run / MODEL).read_bytes() == model
    assert (run / MODEL).stat().st_mtime_ns == changed


def test_resume_refuses_a_finished_run_of_another_graph_or_of_other_settings(folder, tmp_path):
    run = tmp_path / "run"
    assert infomax(*words(folder, run, "--epochs", 2)).code == 0
    before = (run / MODEL).read_bytes()
    other = write_graph(tmp_path / "other", seed=1)
    refused(
        infomax(*words(other, run, "--epochs", 2, "--resume")),
        str(run),
        "a finished run of this graph",
        "another",
    )
    for option, value, told in [
        ("--seed", 1, "seed 1"),
        ("--dim", 6, "dim 6"),
        ("--epochs", 3, "epochs 3"),
    ]:
        refused(
            infomax(*words(folder, run, "--epochs", 2, "--resume", option, value)),
            f"a finished run of {told}",
        )
    refused(
        infomax(*words(folder, run, "--epochs", 2, "--hold-out-edges", 0.1, "--resume")),
        "another graph",
    )
    assert (run / MODEL).read_bytes() == before


@pytest.mark.parametrize(
    ("stop", "code"), [(SystemExit(143), 143), (KeyboardInterrupt(), 130)], ids=str
)
def test_a_signal_that_comes_in_compiled_code_ends_the_command_too(stop, code, monkeypatch):
    """Python tells an exception that C code let pass by a SystemError of its own."""

    def fail(*words, **settings):
        raise SystemError("returned a result with an exception set") from stop

    monkeypatch.setattr(cli, "app", fail)
    assert infomax("train") == (code, "", "")


@pytest.fixture
def hangup():
    """SIGHUP, where there is one, as a terminal starts a command: not ignored."""
    number = getattr(signal, "SIGHUP", None) or pytest.skip("needs SIGHUP")
    before = signal.signal(number, signal.SIG_DFL)
    yield number
    signal.signal(number, before)


def test_a_closed_terminal_stops_a_command_unless_nohup_started_it(hangup):
    assert show.stops() == [signal.SIGINT, signal.SIGTERM, hangup]
    signal.signal(hangup, signal.SIG_IGN)
    assert show.stops() == [signal.SIGINT, signal.SIGTERM]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize(
    "finished", [False, True], ids=["within the training", "in its last epoch"]
)
def test_a_signal_stops_at_the_end_of_an_epoch(name, finished, capsys, request):
    number = request.getfixturevalue("hangup") if name == "SIGHUP" else getattr(signal, name)
    record, before = SimpleNamespace(loss=0.5), signal.getsignal(number)

    def signalled():
        with show.training_progress("epochs", "Go on.") as follow:
            signal.raise_signal(number)
            follow(
                SimpleNamespace(
                    history=[record] * 7, position=0, patience=None, epochs=9, finished=finished
                )
            )

    with pytest.raises(KeyboardInterrupt if number == signal.SIGINT else SystemExit) as ended:
        signalled()
    assert number == signal.SIGINT or ended.value.code == 128 + number
    assert capsys.readouterr().err == "infomax: stopped after epoch 7. Go on.\n"
    assert signal.getsignal(number) == before


DROPPED = """
import ctypes, os, signal, time
from infomax.cli import end_on_signals

end_on_signals()
values, sent = (ctypes.c_int * 5)(3, 1, 2, 5, 4), []


def compare(a, b):
    if not sent:
        sent.append(True)
        os.kill(os.getpid(), signal.SIGTERM)
    return a[0] - b[0]


pointer = ctypes.POINTER(ctypes.c_int)
ctypes.CDLL(None).qsort(values, 5, 4, ctypes.CFUNCTYPE(ctypes.c_int, pointer, pointer)(compare))
print("sorted", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_signal_that_comes_in_a_callback_of_compiled_code_is_not_lost():
    ended = subprocess.run(
        [sys.executable, "-c", DROPPED], capture_output=True, text=True, timeout=50, check=False
    )
    assert (ended.returncode, ended.stdout) == (128 + signal.SIGTERM, "sorted\n"), ended.stderr
