from __future__ import annotations

from dashboard.drawing import topology
from dashboard.drawing.topology import Dot, Line, draw

NETWORKS = {"n1": "vmbr0", "n2": "mine"}


def test_a_server_has_a_dot_on_the_line_of_each_of_its_networks() -> None:
    found = draw(NETWORKS, {"b": ["n2"], "a": ["n2", "n1"]}, {"a": "web", "b": "db"})
    assert [(one.text, one.is_network) for one in found.labels] == [
        ("vmbr0", True),
        ("mine", True),
        ("web", False),
        ("db", False),
    ]
    rows = [one.y for one in found.labels]
    first, second = found.lines
    assert first == Line(12, rows[0], rows[2], 0), "it ends at its last server"
    assert second == Line(32, rows[1], rows[3], 1)
    assert found.dots[2:] == [Dot(12, rows[2], 0), Dot(32, rows[2], 1), Dot(32, rows[3], 1)]
    assert [(one.left, one.y) for one in found.reaches] == [(12, rows[2]), (32, rows[3])]
    assert found.rows == [("web", ["mine", "vmbr0"]), ("db", ["mine"])]
    assert found.said.startswith("2 servers on 2 networks")
    assert all(one.y < found.height for one in found.labels)


def test_nothing_of_what_is_not_drawn() -> None:
    found = draw(NETWORKS, {"abcdefghij": ["n9"], "klmnopqrst": ["n1", "n9"]}, {})
    assert found.rows == [("server klmnopqr", ["vmbr0"])]
    assert draw({}, {"a": ["n1"]}, {}).labels == []


def test_what_is_large_is_cut() -> None:
    networks = {f"n{one}": "x" * 99 for one in range(topology.MOST_NETWORKS + 5)}
    servers = {f"s{one:03}": ["n0", "n14"] for one in range(topology.MOST_SERVERS + 7)}
    found = draw(networks, servers, {})
    assert len(found.lines) == topology.MOST_NETWORKS
    assert (len(found.rows), found.more) == (topology.MOST_SERVERS, 7)
    assert {one.colour for one in found.lines} == set(range(topology.COLOURS))
    assert all(len(one.text) <= 34 for one in found.labels)


def test_networks_of_servers_by_their_ports() -> None:
    ports = [
        {"device_id": "a", "network_id": "n1"},
        {"device_id": "a", "network_id": "n1"},
        {"device_id": "a", "network_id": "n2"},
        {"device_id": "", "network_id": "n2"},
    ]
    assert topology.attached(ports) == {"a": ["n1", "n2"]}
