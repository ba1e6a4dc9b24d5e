import json
import re

import numpy as np
import pytest

from infomax.analysis.report import Chapter, write_report
from infomax.analysis.style import panels
from infomax.errors import InputError


def chapter(name: str, title: str = "A <title>") -> Chapter:
    def draw(stacked):
        figure, axes = panels(2, stacked, height=2)
        axes[0].scatter([0, 1], [0, 1], rasterized=True)
        axes[1].set_title("−1 & more")
        return figure

    return Chapter(
        name,
        title,
        ["Less than -0.5 & 83.2 % of <b>."],
        {"values": [1, 2]},
        draw,
        [["a", "b"], ["<i>", "2"]],
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    write_report(folder, "Title & all", "A lead.", [chapter("one"), chapter("two")])
    return folder


def test_every_figure_comes_as_png_svg_and_json_and_nothing_else_is_left(folder):
    names = {f"{name}.{kind}" for name in ("one", "two") for kind in ("png", "svg", "json")}
    assert {path.name for path in folder.iterdir()} == names | {"report.html"}
    assert (folder / "one.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "one.svg").read_text().lstrip().startswith("<?xml")
    assert json.loads((folder / "one.json").read_text()) == {"values": [1, 2]}


def test_the_page_stands_alone(folder):
    page = (folder / "report.html").read_text()
    assert "http" not in page
    assert "<script" not in page
    assert all(
        link.startswith(("#", "data:image/png;base64,"))
        for link in re.findall(r'(?:href|src)="([^"]*)"', page)
    )
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", page))


def test_no_id_of_one_drawing_is_met_in_another(folder):
    page = (folder / "report.html").read_text()
    drawings = re.findall(r"<svg .*?</svg>", page, flags=re.DOTALL)
    assert len(drawings) == 4  # two chapters, each wide and stacked
    referred = [set(re.findall(r"(?:url\(|href=\")#([^)\"]+)", drawing)) for drawing in drawings]
    for number, names in enumerate(referred):
        assert names
        others = "".join(drawing for other, drawing in enumerate(drawings) if other != number)
        assert not any(f'id="{name}"' in others for name in names)


def test_text_is_escaped_and_set_well(folder):
    page = (folder / "report.html").read_text()
    assert "A &lt;title&gt;" in page
    assert "Less than −0.5 &amp; 83.2\N{NO-BREAK SPACE}% of &lt;b&gt;." in page
    assert "<td>&lt;i&gt;</td>" in page


def test_the_same_report_twice_is_the_same(folder, tmp_path):
    write_report(tmp_path, "Title & all", "A lead.", [chapter("one"), chapter("two")])
    assert (tmp_path / "report.html").read_bytes() == (folder / "report.html").read_bytes()


def test_a_chapter_that_fails_leaves_no_half_written_file(tmp_path):
    broken = Chapter("broken", "", [], {"value": np.float32}, chapter("x").draw)
    with pytest.raises(TypeError):
        write_report(tmp_path, "Title", "", [broken])
    assert {path.name for path in tmp_path.iterdir()} == {"broken.png", "broken.svg"}
    with pytest.raises(InputError, match="nowhere"):
        write_report(tmp_path / "nowhere", "Title", "", [chapter("one")])
