"""What would make room for a server that waits, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from common.story.text import one_line


def nearest(waiting: Mapping[str, Any]) -> str:
    """Return which host is the nearest, and what it lacks; empty: not known.

    >>> nearest({"nearest": {"host": "pve3", "lacks": {"VCPU": 2}}, "needs": {"VCPU": 8}})
    'pve3 lacks 2 of 8 VCPU'
    """
    near, needs = waiting.get("nearest"), waiting.get("needs") or {}
    if not near:
        return ""
    lacks = (f"{n} of {needs[name]} {name}" for name, n in sorted(near["lacks"].items()))
    return f"{one_line(near['host'])} lacks {', '.join(lacks)}"


def would_do(waiting: Mapping[str, Any]) -> str:
    """Return what would make room; empty: not known.

    >>> would_do({"one_more_host_like": "pve1", "would_do": "s-1"})
    'one more host like pve1, or the end of server s-1'
    """
    return ", or ".join(_ways(waiting))


def is_too_large(waiting: Mapping[str, Any]) -> bool:
    """Return whether no host could take it if that were empty; False: one could, or it's not
    known.

    >>> is_too_large({"nearest": None, "one_more_host_like": None})
    True
    >>> is_too_large({"would_do": None})
    False
    """
    known = "one_more_host_like" in waiting and not waiting.get("together_with_request")
    return known and not (waiting["one_more_host_like"] or waiting.get("nearest"))


def _ways(waiting: Mapping[str, Any]) -> Iterator[str]:
    if like := waiting.get("one_more_host_like"):
        yield f"one more host like {one_line(like)}"
    if server := waiting.get("would_do"):
        yield f"the end of server {one_line(server)}"
