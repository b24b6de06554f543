"""Servers of PostgreSQL, where a URL names several: one primary, and all answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import sqlalchemy as sa
from oslo_config import cfg

from common.databases import primary
from common.databases.primary import Server, State
from common.findings import Finding, Level
from launcher.doctor import data


def servers(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Yield databases with two primaries, and servers that don't answer while another one does."""
    for option, url in data.urls(conf).items():
        if data.unusable(url) is not None:
            continue
        made = sa.create_engine(url)
        try:
            found = primary.look_at_all(made)
        finally:
            made.dispose()
        yield from _judge(f"Database, {option}", found)


def _judge(subject: str, found: Mapping[Server, State | None]) -> Iterator[Finding]:
    timelines = {one: state.timeline for one, state in found.items() if state and state.timeline}
    for former in sorted(timelines, key=lambda one: timelines[one])[:-1]:
        yield Finding(
            "database_two_primaries",
            Level.BROKEN,
            subject,
            f"{former} takes statements beside another primary, on timeline {timelines[former]}.",
            "What is written there is lost.",
            (f"systemctl disable --now postgresql    # on {former.host}",),
        )
    silent = [one for one, state in found.items() if state is None]
    if len(silent) < len(found):  # else another check says so
        for one in silent:
            yield Finding(
                "database_server_silent",
                Level.WARNING,
                subject,
                f"{one} doesn't answer.",
                "Nothing is left to take over from the other one.",
                (f"systemctl restart postgresql    # on {one.host}",),
            )
