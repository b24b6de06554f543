"""Who has to go where connections are many."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from web.connections import Connection, Connections, peer_of


@pytest.mark.parametrize(
    ("client", "peer"),
    [
        (("10.0.0.1", 5), "10.0.0.1"),
        (("::ffff:10.0.0.1", 5, 0, 0), "10.0.0.1"),
        (("2001:db8:1:2:3::4", 5, 0, 0), "2001:db8:1:2::/64"),
        (("fe80::1%eth0", 5, 0, 2), "fe80::/64"),
        ("", ""),
        (b"", ""),
    ],
)
def test_connections_are_counted_by_address(client: object, peer: str) -> None:
    assert peer_of(client) == peer


@pytest.fixture
def real() -> Iterator[socket.socket]:
    with socket.socket() as made:
        yield made


def test_the_longest_waiting_one_of_who_has_most_goes(real: socket.socket) -> None:
    held = Connections(most=6, of_peer=4)

    def made(address: str, since: float, busy: bool = False) -> Connection:
        connection = Connection(real, (address, 1), None, 30)
        connection.waits_since, connection.is_busy = since, busy
        held.add(connection)
        return connection

    first, second = made("10.0.0.1", 1), made("10.0.0.1", 2)
    assert not held.is_full("10.0.0.1")
    made("10.0.0.1", 0, busy=True)
    made("10.0.0.1", 3)
    assert held.is_full("10.0.0.1")
    assert not held.is_full("10.0.0.2")
    assert held.longest_waiting("10.0.0.1") == [first]
    made("10.0.0.2", 0)
    made("10.0.0.3", 0)
    assert held.is_full("10.0.0.4")
    assert held.longest_waiting("10.0.0.4") == [first]
    held.remove(first)
    held.remove(first)
    assert len(held) == 5
    assert held.longest_waiting() == [second]


def test_busy_connections_are_not_taken(real: socket.socket) -> None:
    held = Connections(most=1, of_peer=1)
    connection = Connection(real, ("10.0.0.1", 1), None, 30)
    connection.is_busy = True
    held.add(connection)
    assert held.longest_waiting("10.0.0.1") == []
    assert held.is_full("10.0.0.2")
