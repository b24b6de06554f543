"""Commands that may only look, of operations whose deadline passed while no conductor ran.

Each is carried out as always, on the same looks; its first write is refused. So it succeeds if
what it asks is so already, and changes nothing otherwise.
"""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager

from common.failures import Verdict
from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError

_only_look: contextvars.ContextVar[bool] = contextvars.ContextVar("only_look", default=False)
_past_locks: contextvars.ContextVar[bool] = contextvars.ContextVar("past_locks", default=False)


class WouldChangeError(HypervisorError):
    """What is asked is not so, and may not be made so."""


@contextmanager
def only_look(on: bool, *, past_locks: bool = False) -> Iterator[None]:
    """Refuse writes of this thread within the block, if ``on``. ``past_locks``: the look doesn't
    mind locks that nothing will release."""
    token, locks = _only_look.set(on), _past_locks.set(on and past_locks)
    try:
        yield
    finally:
        _only_look.reset(token)
        _past_locks.reset(locks)


def may_look_past_locks() -> bool:
    """Return whether this thread only looks, at locked VMs as well."""
    return _past_locks.get()


def may_only_look() -> bool:
    """Return whether this thread may only look."""
    return _only_look.get()


def require_may_write(what: str) -> None:
    """Raise WouldChangeError if this thread may only look. ``what``: the call, for the message."""
    if _only_look.get():
        raise WouldChangeError(
            Category.UNKNOWN_OUTCOME,
            f"It was not done: it would need {what}. Nothing was changed, since no conductor ran "
            "when its deadline passed.",
            verdict=Verdict.FATAL,
        )
