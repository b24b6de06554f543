"""Which of a place's volumes or ports its next server gets, and which the place has then."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from conductor.servers.groups.belongings import paired, retained


def of_networks(asked: str, had: str) -> Callable[[int, int], bool]:
    """Ports of the networks that letters name; a dash: it was deleted."""
    return lambda wanted, one: asked[wanted] == had[one]


@pytest.mark.parametrize(
    ("asked", "had", "given"),
    [
        ("", "", []),
        ("A", "", [None]),
        ("A", "A", ["0"]),
        ("AA", "AA", ["0", "1"]),
        ("AA", "-A", [None, "1"]),
        ("BA", "A", [None, "0"]),
        ("AB", "BA", ["1", "0"]),
        ("A", "BA", ["1"]),
        ("AAA", "BAA", [None, "1", "2"]),
        ("AAB", "-A", [None, "1", None]),
    ],
)
def test_a_port_is_given_in_its_network(asked: str, had: str, given: Sequence[str | None]) -> None:
    ids = [str(one) for one in range(len(had))]
    assert paired(len(asked), ids, of_networks(asked, had)) == given


def test_a_volume_is_given_in_its_position() -> None:
    there = {"b", "c"}
    had = ["a", "b", "c"]
    assert paired(2, had, lambda wanted, one: wanted == one and had[one] in there) == [None, "b"]


@pytest.mark.parametrize(
    ("mine", "had", "there", "kept"),
    [
        (["a"], [], [], ["a"]),
        (["a"], ["a", "b"], ["a", "b"], ["a", "b"]),
        (["n", "b"], ["a", "b", "c"], ["b", "c"], ["n", "b", "c"]),
        (["n", "a"], ["a", "b"], ["a", "b"], ["n", "a", "b"]),
        ([], ["a"], ["a"], ["a"]),
        (["n"], ["a"], ["a"], ["n", "a"]),
    ],
)
def test_what_is_not_asked_for_remains_the_place_s(
    mine: list[str], had: list[str], there: list[str], kept: list[str]
) -> None:
    assert retained(mine, had, there) == kept
