"""Waits for the end of an operation, for requests that are answered with its result.

Any conductor may end it, so the ledger is read until it has ended.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from common.messages.reports import Category
from common.resources.states import OPEN_STATES
from conductor.store.ledger import operations as ledger
from conductor.store.ledger.operations import Ended
from conductor.store.transactions import Store

#: between two looks; each is twice as long as the one before
FIRST_SECONDS, MOST_SECONDS = 0.02, 0.5


def end_of(store: Store, operation_id: int, seconds: float) -> Ended | None:
    """Return how the operation ended; None if it hasn't within these seconds."""
    until = time.monotonic() + seconds
    for _ in polls():
        with store.read() as connection:
            found = ledger.ended(connection, operation_id)
        if found is None or found.state not in OPEN_STATES:
            return found
        if time.monotonic() >= until:
            break
    return None


def polls() -> Iterator[None]:
    """Yield whenever it is time to look at what another process may change; never ends."""
    pause, never = FIRST_SECONDS, threading.Event()
    while True:
        yield
        never.wait(pause)
        pause = min(2 * pause, MOST_SECONDS)


#: failures that say something about the request, not about the host
_OF_THE_REQUEST = frozenset(
    {Category.CONFIGURATION, Category.API_NOT_SUPPORTED, Category.NETWORK, Category.AUTHORIZATION}
)


def is_refusal(ended: Ended) -> bool:
    """Return whether the request is the cause of a failure; if not, the host is."""
    return ended.category in _OF_THE_REQUEST
