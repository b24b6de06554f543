"""Asks about several things at the same time."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Iterator, Sequence
from typing import Any

from common.errors import MicronovaError, Unavailable
from common.log import logger

LOG = logger(__name__)

#: clusters, providers, and VMs, that are asked about at the same time
READERS = 8


def each(items: Sequence[str], ask: Any) -> Iterator[tuple[str, Any]]:
    """Call ``ask`` for several at a time; yield each answer, or the error."""
    with concurrent.futures.ThreadPoolExecutor(READERS, "audit") as readers:
        futures = [(item, readers.submit(ask, item)) for item in items]
        for item, future in futures:
            try:
                yield item, future.result()
            except MicronovaError as error:
                yield item, error
            except Exception as error:
                # An agent of an older release, or a broken one: the rest is still read.
                LOG.exception("Asking about %s failed unexpectedly.", item)
                yield item, Unavailable(f"{type(error).__name__}; see the log.")
