"""Statements that PostgreSQL has carried out, by the service that sent them."""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import Any

SETTINGS = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.max": "5000",
    "pg_stat_statements.track": "top",
}
"""What the server is started with."""

_SERVICES = {"micronova": "conductor", "micronova_api": "api", "placement": "placement"}
"""{role: service}."""

_CALLS = """
SELECT rolname, query, sum(calls)::bigint FROM pg_stat_statements
JOIN pg_roles ON pg_roles.oid = userid GROUP BY rolname, query
"""

Counts = Mapping[tuple[str, str], int]
"""{(service, statement): how often}."""


class Statements:
    """The counters of a server."""

    def __init__(self, postgres: Any) -> None:
        import psycopg

        postgres.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        where = f"host=127.0.0.1 port={postgres.port} user=postgres dbname=postgres"
        self._connection = psycopg.connect(where, autocommit=True)

    def counts(self) -> Counts:
        """Return how often each statement was carried out so far."""
        found: collections.Counter[tuple[str, str]] = collections.Counter()
        for role, text, calls in self._connection.execute(_CALLS):
            if role in _SERVICES:
                found[_SERVICES[role], " ".join(text.split())] += calls
        return found


def summary(before: Counts, after: Counts, servers: int) -> dict[str, Any]:
    """Return statements for each server by service and kind, and the most frequent ones."""
    more = {key: count - before.get(key, 0) for key, count in after.items()}
    kinds: dict[str, dict[str, float]] = {}
    for (service, text), count in more.items():
        kind = _kind(text)
        of_service = kinds.setdefault(service, {})
        of_service[kind] = of_service.get(kind, 0) + count / servers
    total = sum(sum(one.values()) for one in kinds.values())
    often = sorted(more.items(), key=lambda item: -item[1])[:60]
    return {
        "each": round(total, 1),
        "by_service": {
            service: {kind: round(value, 2) for kind, value in sorted(one.items())}
            for service, one in sorted(kinds.items())
        },
        "most_frequent": [
            f"{count / servers:.2f} {service}: {text[:160]}" for (service, text), count in often
        ],
    }


def _kind(text: str) -> str:
    word = text.split(maxsplit=1)[0].strip(";").lower() if text.strip(";") else "ping"
    return {"select": "select" if len(text) > len("SELECT $1;") else "ping"}.get(word, word)
