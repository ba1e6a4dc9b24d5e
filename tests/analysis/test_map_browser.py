"""The map in a real browser: all interactions, without errors or network requests."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from browser import Page, find_chromium

from infomax.analysis.map import write_map
from infomax.embeddings import Embeddings

pytestmark = pytest.mark.skipif(
    find_chromium() is None, reason="no Chromium here: install Debian's package chromium"
)

N, SECTIONS = 600, ("python", "perl", "rust")
HOSTILE = "<img src=x onerror=alert(1)></script>"


@pytest.fixture(scope="module")
def nodes():
    """Three clusters of nodes: ids, vectors, and the cluster of each node."""
    generator = np.random.default_rng(0)
    group = np.arange(N) % 3
    vectors = 6 * generator.normal(size=(3, 24))[group] + generator.normal(size=(N, 24))
    ids = np.array([f"package-{row}" for row in range(N)], dtype=object)
    ids[5] = HOSTILE
    return ids, vectors.astype(np.float32), group


@pytest.fixture(scope="module")
def path(nodes, tmp_path_factory):
    ids, vectors, group = nodes
    columns = {
        "section": np.array([SECTIONS[each] for each in group], dtype=object),
        "degree": np.arange(N)[::-1] ** 2,
    }
    target: Path = tmp_path_factory.mktemp("map") / "map.html"
    write_map(target, Embeddings(vectors, ids), columns, title="Six hundred packages")
    return target


def quiet(page, path):
    assert page.errors == []
    assert set(page.requests) == {path.as_uri()}


@pytest.fixture(scope="module")
def browser(path):
    with Page(path) as page:
        page.wait("document.body.dataset.ready")
        yield page


@pytest.fixture
def page(browser, path):
    """The page, moved back to how it opens; no test may leave an error or a request."""
    browser.value(
        "pick(-1); choose(null); hover(-1); cancelAnimationFrame(glide); Object.assign(view, wholeView());"
    )
    browser.value("dark = false; show(0)")
    yield browser
    quiet(browser, path)


def neighbours(ids, vectors, node):
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    order = np.argsort(-(units @ units[node]))
    return ids[order[order != node][:10]].tolist()


LISTED = "[...document.querySelectorAll('#details ol span')].map((each) => each.textContent)"
PICKED = "document.querySelector('#details h2')?.textContent"


def test_it_opens_with_a_picture(page):
    assert page.value("document.title") == "Six hundred packages"
    assert page.value("element('count').textContent") == "600 nodes"
    legend = "[...document.querySelectorAll('#legend span')].map((each) => each.textContent)"
    assert page.value(legend) == sorted(SECTIONS)
    filled = """(() => {
        drawPoints();
        const pixels = new Uint8Array(4 * canvas.width * canvas.height);
        gl.readPixels(0, 0, canvas.width, canvas.height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
        return pixels.filter((value, at) => at % 4 === 3 && value > 200).length;
    })()"""
    assert page.value(filled) > 10 * N


def test_search_a_node_see_its_neighbours_and_go_on_to_one(page, nodes):
    ids, vectors, _ = nodes
    page.click_on("#search")
    page.type("PACKAGE-12")
    found = "[...document.querySelectorAll('#found li')].map((each) => each.textContent)"
    assert page.value(found) == [
        "package-12", "package-120", "package-121", "package-122",
        "package-123", "package-124", "package-125", "package-126",
    ]  # fmt: skip
    assert page.value("found.firstChild.title") == "package-12"
    page.type("ArrowDown")
    page.type("Enter")
    page.wait(f"{LISTED}.length === 10")
    assert page.value(PICKED) == "package-120"
    assert page.value(LISTED) == neighbours(ids, vectors, 120)
    assert page.value("document.querySelector('#details ol button').title") == page.value(LISTED)[0]
    told = (
        page.value("document.querySelector('#details ol small').textContent")
        .removesuffix(" %")
        .split(", ")
    )
    nearest = Embeddings(vectors, ids).neighbours("package-120", k=1)[0][1]
    share = 100 * Embeddings(vectors, ids).standing([nearest])[0]
    assert (float(told[0]), float(told[1])) == (
        pytest.approx(nearest, abs=1e-3),
        pytest.approx(share, abs=0.2),
    )
    page.wait("view.scale > 3 * view.whole")  # it has flown there
    other = page.value(LISTED)[3]
    page.click_on("#details ol li:nth-child(4) button")
    page.wait(f"{PICKED} === {json.dumps(other)}")
    page.wait(f"{LISTED}.length === 10")
    assert page.value(LISTED) == neighbours(ids, vectors, ids.tolist().index(other))
    page.type("Escape")
    page.wait("element('details').hidden")


def test_search_says_when_there_is_none(page):
    page.click_on("#search")
    page.value("search.value = ''")
    page.type("no such thing")
    assert page.value("element('found').textContent") == "no such node"
    page.type("Escape")


def test_names_stand_for_ids_and_are_searched(nodes, tmp_path):
    ids, vectors, group = nodes
    names = np.array([f"Airport {row}" if row % 2 else "" for row in range(N)], dtype=object)
    names[7] = "Newark Liberty Intl"
    path = tmp_path / "named.html"
    write_map(
        path,
        Embeddings(vectors, ids, names),
        {"section": np.array(SECTIONS, object)[group]},
        title="Airports",
    )
    found = "[...document.querySelectorAll('#found li')].map((each) => each.textContent)"
    with Page(path) as page:
        page.wait("document.body.dataset.ready")
        for typed in ("newark lib", "LIBERTY", "package-7"):
            page.click_on("#search")
            page.value("search.value = ''")
            page.type(typed)
            assert page.value(found)[0] == "Newark Liberty Intl · package-7"
        page.type("Enter")
        page.wait(f"{LISTED}.length === 10")
        assert page.value(PICKED) == page.value("search.value") == "Newark Liberty Intl"
        facts = page.value("document.querySelector('#details dl').innerText").split()
        assert facts == ["id", "package-7", "section", SECTIONS[1]]
        called = [names[ids.tolist().index(one)] or one for one in neighbours(ids, vectors, 7)]
        assert page.value(LISTED) == called
        page.wait("shown.some(({ text }) => text === 'Newark Liberty Intl')")
        quiet(page, path)


def test_point_and_click_on_the_map(page, nodes):
    ids, vectors, _ = nodes
    x, y = page.value("onPage(77)")
    node = page.value(f"nodeAt({x}, {y}, 10)")
    page.mouse("moved", x, y)
    page.wait("!element('hint').hidden")
    told = [ids[node], "section", SECTIONS[node % 3], "degree", f"{(N - 1 - node) ** 2:,}"]
    assert page.value("element('hint').innerText").split() == told
    page.click(x, y)
    page.wait(f"{LISTED}.length === 10")
    assert page.value(PICKED) == ids[node]
    assert page.value(LISTED) == neighbours(ids, vectors, node)


def test_an_id_is_text_whatever_it_says(page):
    page.value("pick(5)")
    assert page.value(PICKED) == HOSTILE
    assert page.value("document.images.length") == 0


def test_neighbours_close_together_come_apart(page):
    page.value("kept = places.slice(); pick(0)")
    page.wait("near.length === 10")
    page.value(
        "near.forEach((node, rank) => places.set([places[0] + 40 * rank - 180, places[1]], 2 * node)); goTo(0)"
    )
    page.wait("near.filter((node) => shown.some(({ text }) => text === ids[node])).length >= 6")
    page.value("places.set(kept)")
    assert page.value("view.scale / view.whole") > 40


def test_a_long_name_keeps_both_its_ends(page):
    name = "https://example.org/packages/" + 40 * "x" + "/vim-17"
    assert page.value(f"brief({json.dumps(name)})") == "https://example…xxxxxxxxx/vim-17"


def test_colours_follow_the_column_the_legend_and_the_theme(page):
    before = page.value("colourOf(0)")
    page.value("element('column').value = 1; element('column').dispatchEvent(new Event('change'))")
    page.wait("document.querySelector('.ramp')")
    assert page.value("colourOf(0)") != before
    page.value("show(0)")
    page.wait("document.querySelector('#legend button')")
    page.click_on("#legend div:nth-child(2) .dot + button")
    assert page.value("[...focus]") == [2]
    assert page.value("behind") == 2 * N // 3  # all others have stepped back
    page.click_on("#legend div:nth-child(2) .dot + button")
    assert page.value("behind") == 0
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.value(background)
    page.click_on("#theme")
    assert page.value(background) != light
    assert page.value("colourOf(0)") != before


def test_grey_groups_are_told_apart_when_they_are_picked(nodes, tmp_path):
    ids, vectors, _ = nodes
    many = np.array([f"section {row % 60:02}" for row in range(N)], dtype=object)
    write_map(
        tmp_path / "many.html", Embeddings(vectors, ids), {"section": many}, title="Sixty sections"
    )
    with Page(tmp_path / "many.html") as page:
        page.wait("document.body.dataset.ready")
        page.value("[1, 20, 30, 40].forEach((group) => focus.add(group)); recolour()")
        assert len(set(page.value("[1, 20, 30, 40, 50].map(groupColour)"))) == 5
        assert page.value("groupColour(50)") == page.value("theme().other")
        assert page.value("[...focus].map(groupColour).includes(theme().ink)") is False
        page.value("focus.clear(); recolour()")
        grey, twelfth = page.value("theme().other"), page.value("groupColour(12)")
        assert page.value("groupColour(20)") == grey
        page.value("[...document.querySelectorAll('#legend .dot')][19].focus()")
        page.type(
            "Enter"
        )  # the colour goes from the smallest group that has one to the one that was picked
        assert page.value("[groupColour(20), groupColour(12)]") == [twelfth, grey]
        assert page.value("behind") == N - 12 * N // 60  # grey points lie below; none is dimmed
        assert page.value("document.activeElement.ariaLabel") == "Colour of section 19"
        page.click_on("#legend .dot")
        assert page.value("[groupColour(1), groupColour(20)]") == [grey, twelfth]


def test_move_and_zoom(page):
    before = page.value("({...view})")
    page.mouse("wheel", 700, 400, deltaX=0, deltaY=-120)
    page.wait(f"view.scale > {before['scale']} * 1.2")
    x, y = page.value("[view.x, view.y]")
    page.mouse("pressed", 700, 400, button="left", clickCount=1)
    page.mouse("moved", 760, 430, button="left")
    page.mouse("released", 760, 430, button="left", clickCount=1)
    assert page.value("[view.x, view.y]") == pytest.approx([x + 60, y + 30])
    page.click_on("#fit")
    page.wait("Math.abs(view.scale - view.whole) < 1e-6 * view.whole")


def test_a_late_frame_does_not_draw_over_the_picture_at_rest(page):
    """As on a slow machine: the frame comes after 300 ms, at rest is after 120."""
    page.wait("!frame")
    drawn = """(async () => {
        const [request, cancel, draw] = [requestAnimationFrame, cancelAnimationFrame, gl.drawElements.bind(gl)];
        requestAnimationFrame = (step) => setTimeout(() => step(performance.now()), 300);
        cancelAnimationFrame = clearTimeout;
        let count = 0;
        gl.drawElements = (kind, points, ...more) => ((count += points), draw(kind, points, ...more));
        const clear = gl.clear.bind(gl);
        gl.clear = (bits) => ((count = 0), clear(bits));
        share = 0.2;
        refresh();
        await new Promise((done) => setTimeout(done, 600));
        [requestAnimationFrame, cancelAnimationFrame] = [request, cancel];
        [gl.drawElements, gl.clear] = [draw, clear];
        return count;
    })()"""
    assert page.value(drawn) == N


def test_draw_round_nodes_and_take_their_ids(page, nodes):
    ids, _, group = nodes
    inside = page.value("[...Array(600).keys()].filter((node) => node % 3 === 1).map(onPage)")
    left, top = np.min(inside, axis=0) - 4
    right, bottom = np.max(inside, axis=0) + 4
    page.click_on("#lasso")
    corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    page.mouse("pressed", *corners[0], button="left", clickCount=1)
    for corner in corners[1:]:
        page.mouse("moved", *corner, button="left")
    page.mouse("released", *corners[-1], button="left", clickCount=1)
    page.wait("!element('chosen').hidden")
    expected = ids[group == 1].tolist()
    assert page.value("element('many').textContent") == "200 nodes"
    page.click_on("#save")
    saved = Path(page.folder.name) / "ids.txt"
    until = time.monotonic() + 20
    while (
        not (saved.exists() and saved.stat().st_size) and time.monotonic() < until
    ):  # an empty one keeps the place
        page.value("0")
    assert saved.read_text(encoding="utf-8").splitlines() == expected
    page.click_on("#copy")
    assert page.value("element('copy').textContent") == "Copied"
    page.click_on("#drop")
    page.wait("element('chosen').hidden && behind === 0")


def test_fingers_on_a_phone(path):
    with Page(path, 390, 844, touch=True) as phone:
        phone.wait("document.body.dataset.ready")
        assert phone.value("document.documentElement.scrollWidth") == 390
        assert phone.value("getComputedStyle(element('legend')).display") == "none"
        before = phone.value("view.scale")
        phone.touch("Start", (150, 500), (240, 500))
        phone.touch("Move", (100, 500), (290, 500))
        phone.touch("End")
        phone.wait(f"view.scale > 1.5 * {before}")
        phone.value("Object.assign(view, wholeView()); refresh()")
        x, y = phone.value("onPage(40)")
        phone.touch("Start", (x, y))
        phone.touch("End")
        phone.wait(f"{LISTED}.length === 10")
        box = phone.value("element('details').getBoundingClientRect().toJSON()")
        assert 0 <= box["left"] < box["right"] <= 390
        assert 400 < box["top"] < box["bottom"] <= 844
        phone.value("choose(new Uint8Array(600).fill(1))")
        card = "element('chosen').getBoundingClientRect().height"
        assert phone.value(card) == 0  # it would lie on the details
        phone.value("pick(-1)")
        assert phone.value(card) > 0
        quiet(phone, path)
