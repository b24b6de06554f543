"""The pages of the API reference, made of the same tables as the OpenAPI documents."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from release import openapi, references
from release.openapi import APIS, Api, Described

_HEAD = ("call", "versions", "what", "policy")
_VERSION = re.compile(r"^/v\d[.\d]*(?=/)")


def page(name: str) -> str:
    """Return the page of an API."""
    api = APIS[name]
    lines = [
        f"# {api.title}: API reference",
        "",
        f"What micronova serves below `{api.url}`, as [{api.service}]"
        f"({references.CLONES[name][2]}) does; calls without a link to {api.service}'s reference "
        f"are not in it. The same with the schemas of bodies and queries is an "
        f"[OpenAPI document]({name}.json).",
    ]
    every = sorted(openapi.described(name), key=_noun)
    for noun, calls in itertools.groupby(every, key=_noun):
        lines += ["", f"## {noun}", "", *_table(api, calls)]
    return "\n".join(lines) + "\n"


def _noun(call: Described) -> str:
    """Return the first name of a path, which is what the call is about."""
    return _VERSION.sub("", call.path).strip("/").partition("/")[0] or "versions"


def _table(api: Api, calls: Iterable[Described]) -> Iterator[str]:
    columns = [one for one in _HEAD if api.versions or one != "versions"]
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * len(columns)
    for call in calls:
        cells = _cells(call)
        yield f"| {' | '.join(cells[one] for one in columns)} |"


def _cells(call: Described) -> dict[str, str]:
    action = f" `{call.action}`" if call.action else ""
    name = f"`{call.method} {call.path}`{action}"
    return {
        "call": f"[{name}]({call.link})" if call.link else name,
        "versions": " – ".join(call.versions or ()),
        "what": call.summary.replace("|", r"\|"),
        "policy": ", ".join(f"`{rule}`" for rule in call.rules),
    }
