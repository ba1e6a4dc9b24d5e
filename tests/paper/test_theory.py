import time
from fractions import Fraction
from itertools import pairwise

import pytest

from infomax_paper.theory import (
    ENCODERS,
    READOUTS,
    mutual_information,
    optimal_error,
    partitions,
    patch,
    printed_bound,
    small_graphs,
    theory,
)


def test_the_graphs_of_few_nodes_are_counted_once_each():
    assert [len(small_graphs(nodes)) for nodes in (1, 2, 3, 4)] == [1, 2, 4, 11]  # a known sequence
    assert [len(graph) for graph in small_graphs(4)] == [0, 1, 2, 2, 3, 3, 3, 4, 4, 5, 6]


def test_injective_and_constant_readouts_are_as_the_paper_says():
    for k in (1, 2, 5, 11):
        assert (
            optimal_error(range(k)) == printed_bound(range(k)) == Fraction(1, 2 * k)
        )  # the bound is met
        assert optimal_error([0] * k) == Fraction(1, 2)  # no better than chance
    assert printed_bound([0] * 11) == Fraction(11, 2)  # as printed, it says nothing here


def test_numbers_computed_by_hand():
    # Summaries a, a, b of three graphs: the pairs (1, a), (2, a) have 1/3 in the joint and 2/9 in
    # the product, (3, b) has 1/3 and 1/9. The smaller ones: 2/9 + 2/9 + 1/9, halved. Printed: (4/9
    # + 4/9 + 1/9) / 2.
    summaries = ["a", "a", "b"]
    assert optimal_error(summaries) == Fraction(5, 18)
    assert printed_bound(summaries) == Fraction(1, 2)
    assert mutual_information(summaries) == pytest.approx(0.9182958)  # the entropy of 2/3 and 1/3
    assert mutual_information(range(8)) == pytest.approx(3)


def test_no_classifier_of_pairs_does_better():
    summaries = [0, 0, 1, 2]
    pairs = [(x, s) for x in range(4) for s in (0, 1, 2)]
    share = {s: Fraction(summaries.count(s), 4) for s in (0, 1, 2)}
    errors = []
    for code in range(2 ** len(pairs)):  # every classifier there is
        error = Fraction(0)
        for bit, (x, s) in enumerate(pairs):
            joint = Fraction(1, 4) if summaries[x] == s else 0
            error += Fraction(1, 4) * share[s] if code >> bit & 1 else joint
        errors.append(error / 2)
    assert min(errors) == optimal_error(summaries)


def test_a_finer_readout_never_errs_more_nor_knows_less():
    coarse = [0, 0, 0, 0, 1, 1, 1]
    chain = [[0] * 7, coarse, [0, 0, 2, 2, 1, 1, 1], [0, 3, 2, 2, 1, 1, 4], list(range(7))]
    for before, after in pairwise(chain):
        assert optimal_error(after) < optimal_error(before) <= printed_bound(before)
        assert mutual_information(after) > mutual_information(before)


def test_corollary_1_more_states_err_less_and_all_are_needed():
    least = theory().numbers["least_errors"]
    assert list(least) == list(range(1, 12))
    assert all(a > b for a, b in pairwise(least.values()))
    for count, error in least.items():  # as even as 11 graphs can be divided into so many groups
        sizes = [11 // count + (group < 11 % count) for group in range(count)]
        assert error == pytest.approx(sum(size**2 for size in sizes) / 242)


def test_patches_are_what_two_hops_reach_and_do_not_depend_on_names():
    path, star = frozenset({(0, 1), (1, 2), (2, 3)}), frozenset({(0, 3), (1, 3), (2, 3)})
    assert len(patch(path)) == len(patch(star)) == 3
    assert patch(path) == patch(frozenset({(0, 2), (0, 3), (1, 3)})) != patch(star)
    assert patch(frozenset({(0, 1), (2, 3)})) == {(0, 1)}  # the other edge is out of reach
    assert len({patch(graph) for graph in small_graphs() if len(graph) > 3}) == 4


def groupings(count):
    """All ways to give a group to each of so many things: the first in group 0, every new group the
    next number."""
    ways = [[]]
    for _ in range(count):
        ways = [[*way, group] for way in ways for group in range(max(way, default=-1) + 2)]
    return ways


def test_theorem_2_the_vector_with_the_least_error_knows_most_of_the_patch():
    numbers = theory().numbers
    assert len(numbers["patches"]) == 6  # as many as summaries, as the theorem assumes
    ways = groupings(6)
    assert len(ways) == 203  # every encoder there is
    errors = [optimal_error(range(6), way) for way in ways]
    information = [mutual_information(way) for way in ways]
    best = list(range(6))
    assert [way for way, error in zip(ways, errors, strict=True) if error == min(errors)] == [best]
    assert [
        way for way, bits in zip(ways, information, strict=True) if bits > max(information) - 1e-9
    ] == [best]
    assert min(errors) == Fraction(1, 12)
    assert {row["error"] for row in numbers["every_encoder"]} == {float(error) for error in errors}
    rows = list(numbers["encoders"].values())
    assert list(numbers["encoders"]) == list(ENCODERS)
    assert all(
        a["error"] > b["error"] and a["information"] < b["information"] for a, b in pairwise(rows)
    )


def test_a_vector_may_be_coarser_than_its_summary_and_the_other_way_round():
    # Vectors a, a, b with summaries 1, 2, 3: the joint has 1/3 at (a, 1), (a, 2), (b, 3), the
    # product 2/9, 2/9, 1/9.
    assert (
        optimal_error([1, 2, 3], ["a", "a", "b"])
        == optimal_error(["a", "a", "b"], [1, 2, 3])
        == Fraction(5, 18)
    )
    # Both coarse: (a, 1) has 2/3 and 4/9, (b, 2) 1/3 and 1/9.
    assert optimal_error([1, 1, 2], ["a", "a", "b"]) == Fraction(5, 18)
    # Independent, so that joint and product are the same.
    assert optimal_error([1, 1, 2, 2], ["a", "b", "a", "b"]) == Fraction(1, 2)


def test_every_readout_lies_between_injective_and_constant():
    sizes = list(partitions(11))
    assert len(sizes) == 56
    assert {sum(groups) for groups in sizes} == {11}


def test_the_page_takes_milliseconds_and_its_named_readouts_fall_in_order():
    began = time.process_time()
    chapter = theory()
    assert time.process_time() - began < 0.5
    rows = list(chapter.numbers["readouts"].values())
    assert list(chapter.numbers["readouts"]) == list(READOUTS)
    assert all(
        a["error"] > b["error"] and a["information"] < b["information"] for a, b in pairwise(rows)
    )
    assert all(row["error"] <= row["bound"] for row in chapter.numbers["every_readout"])
    # In between, order by information is not order by error: the page says so.
    every = sorted(chapter.numbers["every_readout"], key=lambda row: row["information"])
    assert any(a["error"] < b["error"] for a, b in pairwise(every))
