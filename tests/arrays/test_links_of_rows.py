"""Links: nodes that an edge or a row with two references joins; both references of a hidden row are hidden."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from infomax import Graph
from infomax.arrays.links import find_links, hidden_links, joining_types, linked_rows


@pytest.fixture
def shop() -> Graph:
    """Customers, their orders, the lines of these, and tracks, which are on albums."""
    draws = np.random.default_rng(0)
    return Graph.from_frames(
        nodes={
            "customer": pa.table({"customer_id": range(20), "age": draws.integers(20, 60, 20)}),
            "album": pa.table({"album_id": range(8), "year": draws.integers(1990, 2000, 8)}),
            "track": pa.table(
                {
                    "track_id": range(30),
                    "length": draws.integers(100, 300, 30),
                    "album_id": draws.integers(0, 8, 30),
                }
            ),
            "order": pa.table(
                {"order_id": range(60), "customer_id": draws.integers(0, 20, 60), "sum": range(60)}
            ),
            "line": pa.table(
                {
                    "line_id": range(200),
                    "order_id": draws.integers(0, 60, 200),
                    "track_id": draws.integers(0, 30, 200),
                    "price": draws.random(200),
                }
            ),
        }
    )


def test_a_row_joins_what_it_refers_to_by_chains(shop: Graph) -> None:
    assert joining_types(shop.relations) == ["line"]
    descriptions = [str(links) for links in find_links(shop.relations, "track")]
    assert descriptions == [
        "track - album by album_id",
        "track - order by line",
        "track - customer by line",
    ]
    assert "customer - track by line" in map(str, find_links(shop.relations, "customer"))


def test_what_a_customer_has_is_found_by_chains(shop: Graph) -> None:
    has = linked_rows(shop.relations, "customer", "track", (20, 30))
    links = next(
        candidate
        for candidate in find_links(shop.relations, "customer")
        if "track" in str(candidate)
    )
    assert has.nnz == len(set(zip(links.first.tolist(), links.second.tolist(), strict=True)))
    assert set(has.data.tolist()) == {1.0}
    on_album = linked_rows(shop.relations, "album", "track", (8, 30))
    assert on_album.nnz == 30


def test_no_half_of_a_hidden_link_is_left(shop: Graph) -> None:
    remaining_graph = shop.hold_out_edges(0.2)
    assert remaining_graph.held_out is not None
    before = {str(candidate): candidate for candidate in find_links(shop.relations, "track")}
    after = {
        str(candidate): candidate for candidate in find_links(remaining_graph.relations, "track")
    }
    lines = [relation for relation in remaining_graph.relations if relation.source == "line"]
    references = [np.diff(relation.edges.receivers.indptr) for relation in lines]
    np.testing.assert_array_equal(*references)
    assert 0 < (references[0] == 0).sum() < 100
    for name, links in after.items():
        hidden = hidden_links(
            remaining_graph.held_out, remaining_graph.first_rows, remaining_graph.relations, links
        )
        pairs = sorted(zip(links.first.tolist(), links.second.tolist(), strict=True))
        pairs += zip(hidden.first.tolist(), hidden.second.tolist(), strict=True)
        links_before = before[name]
        pairs_before = sorted(
            zip(links_before.first.tolist(), links_before.second.tolist(), strict=True)
        )
        if "customer" in name:  # of a line whose order is known, but not the order's customer
            assert set(pairs) <= set(pairs_before)
            assert len(hidden)
        else:
            assert sorted(pairs) == pairs_before
