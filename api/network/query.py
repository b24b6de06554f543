"""The query string of a list, in Neutron's grammar."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from api.network.attributes import Attribute
from api.network.errors import BadRequest
from common.errors import Invalid
from db.reads.keyset import Page

Pairs = Sequence[tuple[str, str]]

_NO_FILTERS = frozenset({"fields", "sort_key", "sort_dir", "limit", "marker", "page_reverse"})
#: tags are separated by commas
_TAGS = frozenset({"tags", "tags-any", "not-tags", "not-tags-any"})
#: parts of `fixed_ips=part=value` → the record's field
_FIXED_IPS: Mapping[str, str] = {
    "ip_address": "ip",
    "subnet_id": "subnet_id",
    "ip_address_substr": "ip_part",
}
_DIRECTIONS: Mapping[str, bool] = {"asc": False, "desc": True}


@dataclass
class Query:
    """What a list asks for; `possible` is False when nothing can match."""

    where: dict[str, list[Any]] = field(default_factory=dict)
    order: list[tuple[str, bool]] = field(default_factory=list)
    page: Page = field(default_factory=Page)
    fields: frozenset[str] = frozenset()
    """Attributes to show; empty: all."""
    possible: bool = True

    def narrow(self, name: str, values: Sequence[Any]) -> None:
        """Filter by one of `values` in the record's field, besides earlier filters."""
        if name in self.where:
            values = [value for value in self.where[name] if value in values]
        self.where[name] = list(values)
        self.possible = self.possible and bool(values)


def parse(pairs: Pairs, attributes: Sequence[Attribute]) -> Query:
    """Read the (name, value) pairs of a query string.

    `attributes` are those that the user may see. Raises Invalid in Neutron's words.
    """
    given: defaultdict[str, list[str]] = defaultdict(list)
    for name, value in pairs:
        given[name].append(value)
    listed = {each.name: each for each in attributes if each.listed_by}
    query = Query(
        order=_order(given, listed),
        page=_page(given),
        fields=frozenset(filter(None, given["fields"])),
    )
    filters = {name: values for name, values in given.items() if name not in _NO_FILTERS}
    _filter(query, filters, listed, frozenset(each.name for each in attributes))
    return query


def _filter(
    query: Query,
    filters: Mapping[str, Sequence[str]],
    listed: Mapping[str, Attribute],
    has: Collection[str],
) -> None:
    unknown = []
    for name, values in filters.items():
        if name in listed:
            _attribute(query, listed[name], values)
        elif name == "fixed_ips" and name in has:
            _addresses(query, values)
        elif name in _TAGS and "tags" in has:
            tags = {tag for value in values for tag in value.split(",") if tag}
            if tags:
                query.where[name] = sorted(tags)
        else:
            unknown.append(name)
    if unknown:
        raise Invalid(f"{unknown} is invalid attribute for filtering")


def _attribute(query: Query, attribute: Attribute, values: Sequence[str]) -> None:
    wanted = [attribute.convert(value) for value in values]
    if attribute.field is not None:
        query.narrow(attribute.field, wanted)
    elif attribute.constant not in wanted:
        query.possible = False


def _addresses(query: Query, values: Sequence[str]) -> None:
    parts: defaultdict[str, list[str]] = defaultdict(list)
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or name not in _FIXED_IPS:
            raise Invalid(
                f"Invalid input for operation: '{value}' is not of the form <key>=[value]."
            )
        parts[_FIXED_IPS[name]].append(text)
    for name, texts in parts.items():
        query.narrow(name, texts)


def _order(
    given: Mapping[str, Sequence[str]], listed: Mapping[str, Attribute]
) -> list[tuple[str, bool]]:
    keys = [key for key in given.get("sort_key", ()) if key]
    directions = [direction for direction in given.get("sort_dir", ()) if direction]
    if len(keys) != len(directions):
        raise Invalid("The number of sort_keys and sort_dirs must be same")
    sortable = {name for name, each in listed.items() if each.sorted_by} | set(_SORTED_TIMES)
    absent = [key for key in keys if key not in sortable]
    if absent:
        raise Invalid(f"{absent} is invalid attribute for sort_keys")
    wrong = [direction for direction in directions if direction not in _DIRECTIONS]
    if wrong:
        raise Invalid(f"{wrong} is invalid value for sort_dirs, valid value is 'asc' and 'desc'")
    order: dict[str, bool] = {}
    for key, direction in zip(keys, directions, strict=True):
        name = listed[key].field if key in listed else _SORTED_TIMES[key]
        if name is not None:
            order.setdefault(name, _DIRECTIONS[direction])
    return list(order.items())


_SORTED_TIMES: Mapping[str, str] = {"created_at": "created_at"}


def _page(given: Mapping[str, Sequence[str]]) -> Page:
    text = given["limit"][-1] if given.get("limit") else "0"
    limit = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= limit < 2**31:
        raise BadRequest(
            f"Bad limit request: Limit must be an integer 0 or greater and not '{text}'."
        )
    if limit == 0:  # no pages: Neutron ignores the marker then
        return Page()
    reverse = given["page_reverse"][-1] if given.get("page_reverse") else ""
    marker = given["marker"][-1] if given.get("marker") else None
    return Page(limit=limit, marker=marker or None, backwards=reverse.lower() == "true")


def links(url: str, pairs: Pairs, ids: Sequence[str], page: Page) -> list[dict[str, str]]:
    """Return the `*_links` of a page whose items have these IDs: next, previous or both."""
    if page.limit is None:
        return []
    found = []
    full = len(ids) >= page.limit
    if full or page.backwards:
        found.append({"rel": "next", "href": _href(url, pairs, ids[-1:], {})})
    if full or not page.backwards:
        back = {"page_reverse": "True"}
        found.append({"rel": "previous", "href": _href(url, pairs, ids[:1], back)})
    return found


def _href(url: str, pairs: Pairs, marker: Sequence[str], more: Mapping[str, str]) -> str:
    kept = [(name, value) for name, value in pairs if name not in {"marker", "page_reverse"}]
    return f"{url}?{urlencode([*kept, *(('marker', each) for each in marker), *more.items()])}"
