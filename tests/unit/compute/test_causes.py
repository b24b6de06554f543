from compute.observed.error_causes import Causes


def test_what_ended_is_reported_once() -> None:
    causes = Causes()
    assert not causes.update({1, 2, 3}, ["a"])
    assert causes.update({2}, ["a", "b"])
    assert causes.take() == ((1, 3), ("b",))
    assert causes.take() == ((), ())
    assert not causes.update({2}, ["a", "b"])


def test_the_first_look_eases_nothing() -> None:
    causes = Causes()
    assert not causes.update((), ["a", "b"])
    assert causes.take() == ((), ())


def test_what_began_again_before_it_was_reported_has_not_ended() -> None:
    causes = Causes()
    causes.update({1}, ["a"])
    causes.update((), [])
    causes.update((), ["a"])
    causes.update({1}, [])
    assert causes.take() == ((), ())


def test_a_cluster_that_answers_again_takes_work_again() -> None:
    causes = Causes()
    causes.unreachable()
    causes.update((), ["a", "b"])
    assert causes.take() == ((), ())
    causes.unreachable()
    causes.update((), ["a", "b"])
    assert causes.take() == ((), ("a", "b"))
