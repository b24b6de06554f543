"""What comes while something is worked on is worked on together."""

from __future__ import annotations

from conductor.engine.gathering import Gathering


def test_what_comes_meanwhile_is_worked_on_together() -> None:
    done: list[list[int]] = []

    def work(items: list[int]) -> None:
        done.append(items)
        if items == [1]:
            # Others bring these while the first is worked on: they needn't work themselves.
            assert not gathering.add([2])
            assert not gathering.add([3, 4])

    gathering = Gathering(work, most=2)
    assert gathering.add([1])
    gathering.drain()
    assert done == [[1], [2, 3], [4]]
    assert gathering.add([5])


def test_nothing_needs_no_work() -> None:
    assert not Gathering(lambda items: None, most=2).add([])


def test_what_fails_keeps_nothing_else_from_its_turn() -> None:
    done: list[int] = []

    def work(items: list[int]) -> None:
        if items == [1]:
            raise ValueError
        done.extend(items)

    gathering = Gathering(work, most=1)
    assert gathering.add([1, 2])
    gathering.drain()
    assert done == [2]
