"""What a decision adds to the metrics."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence

from common.errors import Unavailable
from common.messages.scheduling import LEFT, Decision
from common.metrics import table
from scheduler.select import CHANGED, CLAIMED, FULL, NOT_TOGETHER, TAKEN

_RESULTS = {
    CLAIMED: "claimed",
    TAKEN: "taken",
    FULL: "full",
    CHANGED: "changed",
    NOT_TOGETHER: "together",
    LEFT: "left",
}


@contextlib.contextmanager
def deciding(count: int) -> Iterator[None]:
    """Measure the block as decisions about so many servers."""
    began = time.perf_counter()
    try:
        yield
    except Unavailable:
        table.DECISIONS.count("unavailable", by=count)
        raise
    finally:
        table.DECISION_SECONDS.observe(time.perf_counter() - began)


def decided(decisions: Sequence[Decision]) -> None:
    """Count decisions, the hosts that each filter refused, and their claims."""
    for one in decisions:
        table.DECISIONS.count("no_valid_host" if one.host is None else "placed")
        for name, refused in one.counts.items():
            table.REFUSED_HOSTS.count(name, by=refused)
        for claim in one.claims:
            table.CLAIMS.count(_RESULTS[claim["result"]])
            if claim["generation_retries"]:
                table.CLAIM_CONFLICTS.count(by=claim["generation_retries"])
