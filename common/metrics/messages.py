"""Measures messages between services, where ``common.rpc`` sends and takes them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from common.metrics import table

OK = "ok"


@contextlib.contextmanager
def calling(topic: str, method: str, result_of: Callable[[Exception], str]) -> Iterator[None]:
    """Record a call; ``result_of`` names how it ended by its error."""
    began, result = time.perf_counter(), OK
    try:
        yield
    except Exception as error:
        result = result_of(error)
        raise
    finally:
        table.RPC_CALL_SECONDS.observe(time.perf_counter() - began, topic, method)
        table.RPC_CALLS.count(topic, method, result)


@contextlib.contextmanager
def casting(topic: str, method: str) -> Iterator[None]:
    """Record a cast."""
    result = "unavailable"
    try:
        yield
        result = OK
    finally:
        table.RPC_CASTS.count(topic, method, result)


@contextlib.contextmanager
def handling(
    topic: str, method: str, waited: float | None, result_of: Callable[[Exception], str]
) -> Iterator[None]:
    """Record that a message is carried out; it has waited so many seconds for a thread."""
    if waited is not None:
        table.RPC_WAIT_SECONDS.observe(waited, topic)
    began, result = time.perf_counter(), OK
    try:
        yield
    except Exception as error:
        result = result_of(error)
        raise
    finally:
        table.RPC_HANDLING_SECONDS.observe(time.perf_counter() - began, topic, method)
        table.RPC_HANDLED.count(topic, method, result)
