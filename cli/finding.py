"""Things by name or ID, and what to say of a name that fits none or several."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from cli.errors import CommandFailed

_SHOWN = 20
#: what the SDK's lists take of what its ``find_…`` does
_OF_LISTS = frozenset({"all_projects", "domain_id"})


#: what ends a path or a part of it, or is decoded on the way; and steps in the path
_NO_PART = re.compile(r"[/?#%]|\A\.{1,2}\Z")


class NotFound(CommandFailed):
    """Nothing has the name."""


@dataclass(frozen=True)
class _Kind:
    """How a kind of resource is looked up and named."""

    api: str
    list: str
    label: str
    few: bool = True
    """Whether all names may be shown to somebody who takes a wrong one."""


_KINDS: Mapping[str, _Kind] = {
    "backup": _Kind("block_storage", "backups", "backup", few=False),
    "flavor": _Kind("compute", "flavors", "flavor"),
    "image": _Kind("image", "images", "image"),
    "network": _Kind("network", "networks", "network"),
    "port": _Kind("network", "ports", "port", few=False),
    "server": _Kind("compute", "servers", "server", few=False),
    "server_group": _Kind("compute", "server_groups", "server group"),
    "snapshot": _Kind("block_storage", "snapshots", "snapshot of a volume", few=False),
    "transfer": _Kind("block_storage", "transfers", "transfer of a volume", few=False),
    "volume": _Kind("block_storage", "volumes", "volume", few=False),
}


def find(connection: Any, kind: str, name_or_id: str, **query: Any) -> Any:
    """Return the one thing of a kind, e.g. ``find(connection, "flavor", "m1.small")``.

    :param query: for the SDK's ``find_…``.
    :raises NotFound: there is none; with the names there are.
    :raises CommandFailed: there are several; with their IDs.
    """
    from openstack import exceptions

    known = _KINDS[kind]
    proxy = getattr(connection, known.api)
    try:
        return look_up(proxy, kind, known.list, name_or_id, **query)
    except exceptions.DuplicateResource as error:
        matches = _matches(getattr(proxy, known.list), kind, name_or_id, query)
        raise CommandFailed(_several(known.label, name_or_id, matches)) from error
    except exceptions.NotFoundException as error:
        if not known.few:
            raise NotFound(f"No {known.label} named '{name_or_id}'.") from error
        names = [str(one.name) for one in itertools.islice(getattr(proxy, known.list)(), 200)]
        raise NotFound(_none(known.label, name_or_id, names)) from error


def segment(name_or_id: str) -> str:
    """Return a name or ID as one segment of a path. Raises NotFound."""
    # however it is encoded, what sends a request takes it for a step in the path
    if name_or_id in (".", ".."):
        raise NotFound(f"Nothing is named '{name_or_id}'.")
    return quote(name_or_id, safe="")


def _is_plain(text: str) -> bool:
    """Return whether a text that nobody quotes is one segment of a path all the same.

    >>> _is_plain("m1 large"), _is_plain("m1#large"), _is_plain("..")
    (True, False, False)
    """
    return _NO_PART.search(text) is None


def look_up(proxy: Any, kind: str, plural: str, name_or_id: str, **query: Any) -> Any:
    """Return what the SDK's ``find_…`` does, by name alone where it can be no ID.

    The SDK asks for an ID unquoted: for that before a ``#`` or ``?``, which another one may have.

    :param plural: the SDK's list of the kind.
    :raises: the SDK's NotFoundException or DuplicateResource.
    """
    from openstack import exceptions

    if _is_plain(name_or_id):
        return getattr(proxy, f"find_{kind}")(name_or_id, ignore_missing=False, **query)
    found = list(_named(getattr(proxy, plural), kind, name_or_id, query))
    if len(found) > 1:
        raise exceptions.DuplicateResource(f"More than one {kind} has the name '{name_or_id}'.")
    if not found:
        raise exceptions.NotFoundException(f"No {kind.capitalize()} found for {name_or_id}")
    return found[0]


def _named(listed: Any, kind: str, name: str, query: Mapping[str, Any]) -> Iterator[Any]:
    """Yield all of that name; the compute API takes a regular expression."""
    kept = {key: value for key, value in query.items() if key in _OF_LISTS}
    wanted = f"^{re.escape(name)}$" if kind == "server" else name
    return (one for one in listed(name=wanted, **kept) if one.name == name)


def _matches(listed: Any, kind: str, name: str, query: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (ID, state) of all of that name."""
    return [
        (str(one.id), str(getattr(one, "status", None) or ""))
        for one in itertools.islice(_named(listed, kind, name, query), _SHOWN)
    ]


def _several(label: str, name: str, matches: Sequence[tuple[str, str]]) -> str:
    ids = ", ".join(f"{one} ({state})" if state else one for one, state in matches)
    return f"More than one {label} is named '{name}', take an ID: {ids}"


def _none(label: str, name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, 1)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    if not names:
        return f"No {label} named '{name}': there is none at all."
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"No {label} named '{name}'.{hint} There are: {', '.join(names[:_SHOWN])}{more}"
