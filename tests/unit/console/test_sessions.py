"""Places and grants of one proxy."""

from __future__ import annotations

import threading

import pytest

from common.errors import Unavailable
from console.sessions import Sessions
from tests.unit.console.scripted import Scripted


def test_an_agent_joins_by_its_grant_once() -> None:
    sessions, agent = Sessions(2), Scripted()
    joined: list[bool] = []
    opened = threading.Event()
    with sessions.session() as session:
        waiting = threading.Thread(
            target=lambda: joined.append(sessions.join(session.grant, agent, opened.set))
        )
        waiting.start()
        assert session.agent(5) is agent
        assert opened.wait(60)
        assert not sessions.join(session.grant, Scripted(), pytest.fail)
        assert joined == []
    waiting.join(60)
    assert joined == [True]


def test_a_grant_ends_with_its_session() -> None:
    sessions = Sessions(1)
    with sessions.session() as session:
        with pytest.raises(Unavailable):
            session.agent(0)
    assert not sessions.join(session.grant, Scripted(), pytest.fail)
    assert not sessions.join("", Scripted(), pytest.fail)


def test_places_are_given_back() -> None:
    sessions = Sessions(1)
    with sessions.session(), pytest.raises(Unavailable), sessions.session():
        pass
    with sessions.session() as one:
        pass
    with sessions.session() as other:
        assert other.grant != one.grant
