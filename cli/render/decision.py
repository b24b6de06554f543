"""A decision of the scheduler, told: which host, of how many, and why not the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from cli.render.text import Line, duration, one_line

Facts: TypeAlias = Mapping[str, Any]

#: hosts named for each filter and in the scores; the rest is counted (``-f json`` has all)
_MOST = 5


def decision_lines(decision: Facts) -> Iterator[Line]:
    """Yield the lines of a decision: ``{"attempt": n, "body": Decision}``."""
    body: Facts = decision.get("body") or decision
    considered = body.get("considered") or 0
    hosts = f"{considered} host{'' if considered == 1 else 's'} considered"
    took = f" in {duration(body['seconds'])}" if body.get("seconds") else ""
    if body.get("host"):
        yield (("host ", ""), (one_line(body["host"]), "bold green"), (f"  {hosts}{took}", "dim"))
    else:
        reason = one_line(body.get("reason") or "no reason was given")
        yield (("no host: ", "bold red"), (reason, "red"), (f"  {hosts}{took}", "dim"))
    yield from _claims(body)
    yield from _scores(body)
    yield from _refusals(body)
    alternates = [one_line(a.get("host")) for a in body.get("alternates") or ()]
    if alternates:
        yield (("  would have done as well: ", "dim"), (", ".join(alternates), ""))


def _claims(body: Facts) -> Iterator[Line]:
    for claim in body.get("claims") or ():
        result = one_line(claim.get("result") or "")
        style = "green" if result in ("claimed", "ok") else "yellow"
        yield (("  claim ", "dim"), (f"{one_line(claim.get('host'))}: ", ""), (result, style))


def _scores(body: Facts) -> Iterator[Line]:
    scores = dict(body.get("scores") or {})
    for host, parts in list(scores.items())[:_MOST]:
        total = sum(parts.values())
        each = "  ".join(f"{one_line(name)} {value:+.3f}" for name, value in parts.items())
        yield (("  score ", "dim"), (f"{one_line(host)} {total:+.3f}", ""), (f"  {each}", "dim"))
    yield from _rest(len(scores), "scored")


def _refusals(body: Facts) -> Iterator[Line]:
    for name, hosts in (body.get("refused") or {}).items():
        count = len(hosts)
        plural = "" if count == 1 else "s"
        yield (
            ("  refused by ", "dim"),
            (one_line(name), "yellow"),
            (f": {count} host{plural}", ""),
        )
        for host, reason in sorted(hosts.items())[:_MOST]:
            yield ((f"    {one_line(host)}: ", ""), (one_line(reason), "yellow"))
        yield from _rest(count, "refused")


def _rest(count: int, what: str) -> Iterator[Line]:
    if count > _MOST:
        yield ((f"    and {count - _MOST} more {what}", "dim"),)
