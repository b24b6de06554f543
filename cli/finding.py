"""Things by name or ID, and what to say of a name that fits none or several."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cli.errors import CommandFailed

_SHOWN = 20


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
        return getattr(proxy, f"find_{kind}")(name_or_id, ignore_missing=False, **query)
    except exceptions.DuplicateResource as error:
        matches = _matches(getattr(proxy, known.list), kind, name_or_id, query)
        raise CommandFailed(_several(known.label, name_or_id, matches)) from error
    except exceptions.NotFoundException as error:
        if not known.few:
            raise NotFound(f"No {known.label} named '{name_or_id}'.") from error
        names = [str(one.name) for one in itertools.islice(getattr(proxy, known.list)(), 200)]
        raise NotFound(_none(known.label, name_or_id, names)) from error


def _matches(listed: Any, kind: str, name: str, query: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (ID, state) of all of that name; the compute API takes a regular expression."""
    kept = {key: value for key, value in query.items() if key == "all_projects"}
    wanted = f"^{re.escape(name)}$" if kind == "server" else name
    found: Iterable[Any] = listed(name=wanted, **kept)
    return [
        (str(one.id), str(getattr(one, "status", None) or ""))
        for one in itertools.islice((one for one in found if one.name == name), _SHOWN)
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
