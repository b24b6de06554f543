"""All metrics of this process, or of all workers of a service, in Prometheus' text format.

gunicorn's workers share their values in files of one directory, which prometheus_client maps into
memory; the worker that answers a scrape adds up those of all. The values of a worker that ended
still count, as a counter must not fall, except its part of gauges.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import REGISTRY, Collector

from common.metrics import table
from common.metrics.instruments import Sampled, families
from common.metrics.sharing import VARIABLE

CONTENT_TYPE = CONTENT_TYPE_LATEST

_LIVE_GAUGE = re.compile(r"gauge_live\w*_([0-9]+)\.db")
_SAMPLED = tuple(one for one in table.ALL if isinstance(one, Sampled))


class _Now(Collector):
    """What is asked for at each scrape."""

    def collect(self) -> Iterator[Metric]:
        return families(_SAMPLED)


def text() -> bytes:
    """Return everything there is now."""
    registry = CollectorRegistry(auto_describe=False)
    shared = os.environ.get(VARIABLE)
    if shared:
        from prometheus_client.multiprocess import MultiProcessCollector

        _forget_dead(Path(shared))
        MultiProcessCollector(registry, path=shared)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
    registry.register(_Now())
    return generate_latest(REGISTRY) + generate_latest(registry)


def _forget_dead(directory: Path) -> None:
    """Remove what workers that are gone have of gauges: nobody lowers them any more."""
    for file in directory.iterdir():
        found = _LIVE_GAUGE.fullmatch(file.name)
        if found is not None and not _lives(int(found[1])):
            file.unlink(missing_ok=True)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
