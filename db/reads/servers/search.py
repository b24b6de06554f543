"""What a text that somebody types finds: servers by name, ID, address or tag."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

import sqlalchemy as sa

from db import schema
from db.reads.patterns import holds_beginning

_T = schema.servers.c
#: fewer characters of an ID are those of too many
_ID = re.compile(r"[0-9a-f]{4}[0-9a-f-]{0,32}", re.IGNORECASE)
_ADDRESS = re.compile(r"[0-9a-f]{0,4}([.:][0-9a-f]{0,4}){1,8}", re.IGNORECASE)


def finds(connection: sa.Connection, text: str) -> sa.ColumnElement[bool]:
    """Return the condition that a server has the text in its name, in any case, or at the
    beginning of a tag, of its ID (four characters at least), or of an address.

    A whole address finds no longer ones.
    """
    return sa.or_(*_ways(connection, text))


def _ways(connection: sa.Connection, text: str) -> Iterator[sa.ColumnElement[bool]]:
    yield _T.name.icontains(text, autoescape=True)
    yield holds_beginning(connection, _T.tags, text)
    if _ID.fullmatch(text):
        yield _T.uuid.startswith(text.lower(), autoescape=True)
    if _ADDRESS.fullmatch(text):
        yield _at(text)


def _at(text: str) -> sa.ColumnElement[bool]:
    ports, more = schema.ports.c, schema.port_addresses.c
    whole = _whole(text)

    def found(ip: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
        return ip.startswith(text.lower(), autoescape=True) if whole is None else ip == whole

    others = sa.exists(sa.select(1).where(more.port_id == ports.id, found(more.ip)))
    mine = sa.or_(found(ports.ip), found(ports.ip6), others)
    return sa.exists(sa.select(1).where(ports.server_uuid == _T.uuid, mine))


def _whole(text: str) -> str | None:
    """Return an address as the database writes it; None: the text is a beginning at most.

    >>> _whole("192.0.2.1"), _whole("2001:DB8::1"), _whole("192.0.2."), _whole("2001:db8::")
    ('192.0.2.1', '2001:db8::1', None, None)
    """
    if text.endswith(":"):
        return None
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None
