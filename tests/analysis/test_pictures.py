import sys
import warnings
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import sparse

from infomax.analysis.pictures import (
    colour_groups,
    sample_rows,
    scatter,
    shorten_middle,
    tsne,
    umap,
    write_legend,
    write_names,
)
from infomax.analysis.style import COLOURS, GREY, INK, in_style, panels, svg
from infomax.errors import InputError
from infomax.evaluation.metrics import silhouette


def test_a_sample_is_sorted_distinct_and_decided_by_the_seed():
    rows = sample_rows(1000, 50, seed=0)
    assert len(rows) == len(set(rows.tolist())) == 50
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(rows, sample_rows(1000, 50, seed=0))
    assert (rows != sample_rows(1000, 50, seed=1)).any()
    assert sample_rows(3, 50, seed=0).tolist() == [0, 1, 2]


def test_tsne_keeps_clusters_apart_and_its_seed():
    generator = np.random.default_rng(0)
    group = np.arange(90) % 3
    vectors = 20 * generator.normal(size=(3, 64))[group] + generator.normal(size=(90, 64))
    points = tsne(vectors, seed=0)
    assert points.shape == (90, 2)
    gaps = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(gaps, np.inf)
    assert (group[gaps.argmin(axis=1)] == group).all()
    np.testing.assert_array_equal(points, tsne(vectors, seed=0))


@pytest.mark.parametrize("shape", [(2, 2), (5, 3)])
def test_tsne_of_very_little(shape):
    assert np.isfinite(tsne(np.random.default_rng(0).normal(size=shape), seed=0)).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    "vectors", [np.full((100, 60), 0.3, np.float32), np.zeros((3, 4))], ids=["alike", "zeros"]
)
def test_vectors_that_are_all_alike_lie_in_one_place(monkeypatch, form, vectors):
    vectors = vectors.copy()
    vectors[0] *= 1 + 1e-7  # as rounding leaves them
    assert not tsne(form(vectors), seed=0).any()
    monkeypatch.setitem(sys.modules, "umap", object())  # not needed
    assert umap(form(vectors), seed=0).shape == (len(vectors), 2)


def test_tsne_refuses_less():
    with pytest.raises(InputError, match="two rows and two columns"):
        tsne(np.ones((1, 4)), seed=0)


def test_names_with_control_characters_make_a_well_formed_svg():
    names = ["bell \x07", "\x1b[31mred", "\x00", "\ufffe", "\ud800", "a&b<c>"]
    with in_style():
        figure, axes = panels(1, False)
        colours, entries = colour_groups(np.array(names * 3, dtype=object))
        write_legend(figure, entries, "outside right center")
        write_names(axes[0], [(name, np.zeros(2), colour) for name, colour in colours.items()])
        document = ElementTree.fromstring(
            svg(figure, "salt").encode()
        )  # raises where it is malformed
    text = "".join(document.itertext())
    shown = ("bell \\x07", "\\x1b[31mred", "\\x00", "\\ufffe", "\\ud800", "a&b<c>")
    assert [name for name in shown if name not in text] == []


@pytest.mark.parametrize("groups", [1, 40])
def test_a_picture_is_written_whole(tmp_path, groups):
    from matplotlib.image import imread

    generator = np.random.default_rng(0)
    names = np.array(
        [f"section {number}" for number in np.minimum(np.arange(400), groups * 5) % groups],
        dtype=object,
    )
    names[:3] = ""
    names[names == "section 0"] = "$x_{"  # no formula, and a broken one at that
    scatter(generator.normal(size=(400, 2)), names, tmp_path / "map.png", "A title")
    scatter(generator.normal(size=(400, 2)), names, tmp_path / "map.png", "A title, written again")
    assert [path.name for path in tmp_path.iterdir()] == ["map.png"]
    picture = imread(tmp_path / "map.png")
    assert picture.shape[1] == 1600
    pixels = np.round(255 * picture[..., :3]).astype(np.int64) @ [1 << 16, 1 << 8, 1]
    seen = {
        f"#{pixel:06x}" for pixel in np.unique(pixels).tolist()
    }  # the legend's dots are not transparent
    assert set(COLOURS) & seen == set(COLOURS[:groups])
    assert GREY in seen or groups == 1


def test_names_keep_inside_and_apart_and_a_line_leads_back_from_those_that_moved():
    _, (axes,) = panels(1, stacked=True)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    corners = [(0.5, 0.3), (0.0, 0.0), (1.0, 1.0), (1.0, 1.0), (0.99, 0.99), (0.98, 0.99)]
    write_names(axes, [("a name", np.array(place), INK) for place in corners], fontsize=11, lift=11)
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
    lines = [text for text in axes.texts if not text.get_text()]
    page = axes.get_window_extent().padded(0.01)
    assert len(boxes) == len(corners)  # one each, also where names are alike
    assert all(page.contains(*box.min) and page.contains(*box.max) for box in boxes)
    assert sum(one.overlaps(other) for one in boxes for other in boxes) == len(boxes)
    assert {tuple(line.xy) for line in lines} <= set(corners)
    assert len(lines) >= 2


def test_long_names_lose_their_middle():
    assert shorten_middle("x" * 24) == "x" * 24
    assert (
        shorten_middle("http://example.org/" + "path/" * 20 + "page 7")
        == "http://examp…path/page 7"
    )
    names = np.array(["a" * 120 + "b", "a" * 120 + "c"], dtype=object)
    colours, entries = colour_groups(names)
    assert list(colours) == names.tolist()
    assert [len(text) for _, text in entries] == [24 + len("  (1)")] * 2


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(InputError, match=r"nowhere.map\.png"):
        scatter(
            np.zeros((4, 2)),
            np.array(["a"] * 4, dtype=object),
            tmp_path / "nowhere" / "map.png",
            "A title",
        )
    assert list(tmp_path.iterdir()) == []


def test_colours_stay_apart_for_every_eye():
    """Distances in OKLab, as seen with three kinds of cones, without the red and without the green ones."""
    protan = [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ]
    deutan = [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ]
    cones = [
        [0.4122215, 0.5363325, 0.0514460],
        [0.2119035, 0.6806995, 0.1073970],
        [0.0883025, 0.2817188, 0.6299787],
    ]
    lab = [
        [0.2104543, 0.7936178, -0.0040720],
        [1.9779985, -2.4285922, 0.4505937],
        [0.0259040, 0.7827718, -0.8086758],
    ]
    codes = [
        [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)] for colour in (*COLOURS, GREY)
    ]
    linear = np.where(
        np.array(codes) <= 0.04045,
        np.array(codes) / 12.92,
        ((np.array(codes) + 0.055) / 1.055) ** 2.4,
    )
    for eye, least in ((np.eye(3), 0.17), (protan, 0.085), (deutan, 0.085)):
        seen = (
            np.cbrt(np.clip(linear @ np.array(eye).T, 0, 1) @ np.array(cones).T) @ np.array(lab).T
        )
        gaps = np.linalg.norm(seen[:, None] - seen[None], axis=2) + np.eye(len(seen))
        assert gaps.min() > least


@pytest.mark.slow
def test_umap_keeps_clusters_apart_and_its_seed():
    pytest.importorskip("umap", reason="needs the extra umap")
    groups = np.repeat([0, 1, 2], 40)
    vectors = 20 * np.eye(3)[groups] + np.random.default_rng(0).normal(size=(120, 3))
    points = umap(vectors, seed=0)
    assert points.shape == (120, 2)
    assert silhouette(points, groups) > 0.5
    np.testing.assert_array_equal(points, umap(vectors, seed=0))


def test_umap_not_installed_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(InputError, match=r"infomax\[umap\]"):
        umap(np.eye(4), seed=0)


def test_a_name_that_the_font_does_not_have_is_drawn_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with in_style():
            figure, (axes,) = panels(1, False)
            axes.set_title("to the moon 🚀")
            assert svg(figure, "salt")
