"""The query string of an image list, in Glance's grammar."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from common import digits
from common.errors import Invalid
from db.reads.images.images import Condition, Reach
from db.reads.keyset import Page

DEFAULT_LIMIT = 25
MAX_LIMIT = 1000

_SORT_FIELDS: Mapping[str, str] = {
    "name": "name",
    "status": "status",
    "container_format": "container_format",
    "disk_format": "disk_format",
    "size": "size_bytes",
    "id": "id",
    "created_at": "created_at",
    "updated_at": "updated_at",
}
_NUMBERS: Mapping[str, str] = {
    "size": "size_bytes",
    "virtual_size": "virtual_size_bytes",
    "min_disk": "min_disk_gib",
    "min_ram": "min_ram_mib",
}
_NAMES = ("name", "id", "status", "disk_format", "container_format")
_TIMES = ("created_at", "updated_at")
_TIME_OPERATORS = ("eq", "neq", "gt", "gte", "lt", "lte")
_VISIBILITIES = ("community", "public", "private", "shared", "all")
_MEMBER_STATUSES = ("pending", "accepted", "rejected", "all")
_DIRECTIONS = ("asc", "desc")
_BOOLEANS: Mapping[str, bool] = {"true": True, "false": False}

#: a quoted value, or one up to the next comma
_LIST_ITEM = re.compile(r'(?:"((?:[^"\\]|\\.)*)"|([^",]*))(,|$)')


@dataclass
class Query:
    """What a list asks for."""

    conditions: list[Condition] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    order: list[tuple[str, bool]] = field(default_factory=list)
    page: Page = field(default_factory=Page)
    tags: list[str] = field(default_factory=list)
    visibility: str | None = None
    member_status: str = "accepted"
    hidden: bool = False

    def reach(self, project: str | None) -> Reach:
        """Return which of the images visible to the project are listed."""
        return Reach(self.visibility, self.member_status, project, self.hidden)

    def where(self, name: str, operator: str, value: Any) -> None:
        """Filter by a field of the database."""
        self.conditions.append(Condition(name, operator, value))


def parse(pairs: Sequence[tuple[str, str]]) -> Query:
    """Read the (name, value) pairs of a query string. Raises Invalid, in Glance's words."""
    query = Query(page=_page(dict(pairs)), order=_order(pairs))
    filters = {name: value for name, value in pairs if name not in _NO_FILTERS}
    query.tags = [value for name, value in pairs if name == "tag"]
    query.member_status = dict(pairs).get("member_status", "accepted")
    if query.member_status not in _MEMBER_STATUSES:
        raise Invalid(f"Invalid status: {query.member_status}")
    query.hidden = _boolean("os_hidden", filters.pop("os_hidden", "false").lower())
    for name, value in filters.items():
        _filter(query, name, value)
    return query


_NO_FILTERS = ("limit", "marker", "sort", "sort_key", "sort_dir", "member_status", "tag")


def _filter(query: Query, name: str, value: str) -> None:
    if name in _NAMES:
        _name(query, name, value)
    elif name in _TIMES:
        _time(query, name, value)
    elif name.endswith(("_min", "_max")):
        _range(query, name, value)
    elif name in _NUMBERS:
        query.where(_NUMBERS[name], "eq", _integer(value, f"Invalid {name}: {value}"))
    elif name == "visibility":
        _visibility(query, value)
    elif name == "protected":
        query.where("protected", "eq", _boolean(name, value))
    elif name == "owner":
        query.where("project_id", "eq", value)
    elif name in {"checksum", "os_hash_value"}:
        query.where("checksum", "eq", value)
    elif name == "changes-since":
        raise Invalid('The "changes-since" filter is no longer available on v2.')
    else:
        query.properties[name] = value


def _name(query: Query, name: str, value: str) -> None:
    operator, rest = _operator(value)
    if operator not in {"in", "eq"}:
        raise Invalid(f"Unable to filter by unknown operator '{operator}'.")
    wanted = _items(rest) if operator == "in" else [rest]
    query.where(name, "in", wanted)


def _operator(value: str) -> tuple[str, str]:
    """`gt:x` is ("gt", "x"); what has no operator is equality (a time has colons too)."""
    operator, colon, rest = value.partition(":")
    if not colon or _moment(value) is not None:
        return "eq", value
    return operator, rest


def _items(text: str) -> list[str]:
    """Values between commas; those with commas in them are quoted."""
    items: list[str] = []
    position = 0
    while position <= len(text):
        match = _LIST_ITEM.match(text, position)
        if match is None:
            raise Invalid(f"Invalid filter value {text}. The quote is not closed.")
        quoted, plain, comma = match.groups()
        items.append(plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
        if not comma:
            break
        position = match.end()
    return items


def _time(query: Query, name: str, value: str) -> None:
    operator, text = _operator(value)
    moment = _moment(text)
    if moment is None:
        raise Invalid(f'Bad "{name}" query filter format. Use ISO 8601 DateTime notation.')
    if operator not in _TIME_OPERATORS:
        raise Invalid("Unable to filter on a unknown operator.")
    query.where(name, operator, moment)


def _moment(text: str) -> datetime.datetime | None:
    # An unquoted plus of a time zone arrives as a space.
    try:
        moment = datetime.datetime.fromisoformat(text.replace(" ", "+"))
        aware = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
        return aware.astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        return None


def _range(query: Query, name: str, value: str) -> None:
    base, bound = name[:-4], name[-3:]
    number = _integer(value, "Unable to filter on a range with a non-numeric value.")
    if base not in _NUMBERS:
        raise Invalid(f"Unable to filter on a range of {base}.")
    query.where(_NUMBERS[base], "gte" if bound == "min" else "lte", number)


def _visibility(query: Query, value: str) -> None:
    if value not in _VISIBILITIES:
        raise Invalid(f"Invalid visibility value: {value}")
    query.visibility = value


def _boolean(name: str, value: str) -> bool:
    if value not in _BOOLEANS:
        raise Invalid(
            f"Invalid value '{value}' for '{name}' filter. Valid values are 'true' or 'false'."
        )
    return _BOOLEANS[value]


def _order(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, bool]]:
    """(field, descending) of `sort`, or of `sort_key` and `sort_dir`; default: newest first."""
    given: dict[str, list[str]] = {"sort": [], "sort_key": [], "sort_dir": []}
    for name, value in pairs:
        if name in given:
            given[name].append(value.strip())
    if given["sort"] and (given["sort_key"] or given["sort_dir"]):
        raise Invalid("Old and new sorting syntax cannot be combined")
    if given["sort"]:
        halves = [part.partition(":") for part in given["sort"][-1].split(",")]
        keys = [key.strip() for key, _, _ in halves]
        directions = [direction.strip() or "desc" for _, _, direction in halves]
    else:
        keys = given["sort_key"] or ["created_at"]
        directions = given["sort_dir"] or ["desc"]
        if len(directions) == 1:
            directions = directions * len(keys)
        if len(directions) != len(keys):
            raise Invalid("Number of sort dirs does not match the number of sort keys")
    return _checked(keys, directions)


def _checked(keys: Sequence[str], directions: Sequence[str]) -> list[tuple[str, bool]]:
    order: dict[str, bool] = {}
    for key, direction in zip(keys, directions, strict=True):
        if key not in _SORT_FIELDS:
            known = ", ".join(_SORT_FIELDS)
            raise Invalid(f"Invalid sort key: {key}. It must be one of the following: {known}.")
        if direction not in _DIRECTIONS:
            raise Invalid(f"Invalid sort direction: {direction}")
        name = _SORT_FIELDS[key]
        order.setdefault(name, direction == "desc")
    return list(order.items())


def _page(given: Mapping[str, str]) -> Page:
    limit = DEFAULT_LIMIT
    if "limit" in given:
        limit = _integer(given["limit"], "limit param must be an integer")
        if limit < 0:
            raise Invalid("limit param must be positive")
    return Page(limit=min(limit, MAX_LIMIT), marker=given.get("marker"))


def _integer(text: str, complaint: str) -> int:
    number = digits.integer(text, 2**63)
    if number is None or abs(number) >= 2**63:
        raise Invalid(complaint)
    return number
