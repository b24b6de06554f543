"""Which servers are on which networks, as a drawing for a template. Pure.

Each network is a line that begins beside its name and runs down; each server has a row, and a dot
on the line of each of its networks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.counting import counted

#: rows, and columns of lines, that are drawn at the most
MOST_SERVERS, MOST_NETWORKS = 40, 10
COLOURS = 4
_ROW, _COLUMN, _MARGIN, _LETTER = 26, 20, 12, 8
_LONGEST = 34


@dataclass(frozen=True)
class Label:
    """A name beside the lines."""

    text: str
    x: int
    y: int
    is_network: bool


@dataclass(frozen=True)
class Line:
    """A network."""

    x: int
    top: int
    bottom: int
    colour: int


@dataclass(frozen=True)
class Dot:
    """An interface of a server, or the beginning of a network's line."""

    x: int
    y: int
    colour: int


@dataclass(frozen=True)
class Reach:
    """The line from a server's first network to its name."""

    left: int
    right: int
    y: int


@dataclass(frozen=True)
class Topology:
    """The drawing, and the same as text."""

    width: int
    height: int
    lines: Sequence[Line]
    dots: Sequence[Dot]
    reaches: Sequence[Reach]
    labels: Sequence[Label]
    rows: Sequence[tuple[str, Sequence[str]]]
    """Names of servers, and of the networks of each."""
    more: int
    """Servers that are not drawn."""

    @property
    def said(self) -> str:
        """What it shows, in a sentence."""
        networks = sum(one.is_network for one in self.labels)
        servers = counted(len(self.rows), "server")
        on = counted(networks, "network")
        return f"{servers} on {on}; the list below has the same."


def attached(ports: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the networks of each server, by IDs."""
    found: dict[str, list[str]] = {}
    for port in ports:
        if port["device_id"]:
            networks = found.setdefault(str(port["device_id"]), [])
            if port["network_id"] not in networks:
                networks.append(str(port["network_id"]))
    return found


def draw(
    networks: Mapping[str, str], servers: Mapping[str, Sequence[str]], names: Mapping[str, str]
) -> Topology:
    """Return the drawing.

    `networks`: names by ID; `servers`: networks of each, by IDs; `names`: of servers by ID.
    """
    columns = {one: number for number, one in enumerate(list(networks)[:MOST_NETWORKS])}
    known = {server: [one for one in there if one in columns] for server, there in servers.items()}
    joined = sorted(
        (server for server, there in known.items() if there),
        key=lambda one: (min(columns[each] for each in known[one]), names.get(one, one)),
    )
    drawn = joined[:MOST_SERVERS]
    left = _MARGIN * 2 + _COLUMN * max(0, len(columns) - 1) + 4
    labels = [
        Label(_short(networks[one]), left, _y(number), True) for one, number in columns.items()
    ]
    dots = [Dot(_x(number), _y(number), number % COLOURS) for number in columns.values()]
    reaches, last = [], dict(columns)
    for row, server in enumerate(drawn, len(columns)):
        places = sorted(columns[one] for one in known[server])
        dots += [Dot(_x(one), _y(row), one % COLOURS) for one in places]
        reaches.append(Reach(_x(places[0]), left - 4, _y(row)))
        labels.append(Label(_short(_name(server, names)), left, _y(row), False))
        last.update(dict.fromkeys(known[server], row))
    lines = [Line(_x(n), _y(n), _y(last[one]), n % COLOURS) for one, n in columns.items()]
    longest = max((len(one.text) for one in labels), default=0)
    return Topology(
        left + longest * _LETTER + _MARGIN,
        _y(len(columns) + len(drawn)) - _ROW // 2,
        lines,
        dots,
        reaches,
        labels,
        [(_name(one, names), [networks[each] for each in known[one]]) for one in drawn],
        len(known) - len(drawn),
    )


def _joined(
    columns: Mapping[str, int], servers: Mapping[str, Sequence[str]], names: Mapping[str, str]
) -> dict[str, list[str]]:
    """Return the servers with a network that is drawn, by the first of them and by name."""
    known = {server: [one for one in there if one in columns] for server, there in servers.items()}
    ordered = sorted(
        (server for server, there in known.items() if there),
        key=lambda one: (min(columns[each] for each in known[one]), names.get(one, one)),
    )
    return {one: known[one] for one in ordered}


def _x(column: int) -> int:
    return _MARGIN + _COLUMN * column


def _y(row: int) -> int:
    return _ROW // 2 + _ROW * row


def _name(server: str, names: Mapping[str, str]) -> str:
    return names.get(server) or f"server {server[:8]}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
