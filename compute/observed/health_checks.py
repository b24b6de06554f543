"""Checks members of groups, and reports what has changed.

A conductor says twice a minute which members are on this worker's hosts and how they are checked:
while no group has checks that is all that happens. Checks run in a few threads; one member has one
at a time. What a conductor could not be sent is sent again.
"""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

from common import clock
from common.errors import MicronovaError
from common.log import logger
from common.messages.health import CheckResult, GuestCheck, GuestHealth
from common.metrics import loops
from common.resources import health_checks
from compute.observed import probes
from compute.observed.probes import Refused

LOG = logger(__name__)

#: seconds after which a conductor is asked again
ASK_SECONDS = 30.0
_NAME = "health checks"

Ping = Callable[[GuestCheck], str]
"""Returns why a guest's agent does not answer, empty: it does. Raises Unknown."""


class Unknown(Exception):
    """Whether a guest is well can't be seen; the text is a sentence."""


@dataclass
class _Member:
    """A member, and what its checks have shown."""

    asked: GuestCheck
    counts_from: datetime.datetime
    due: float
    failures: int = 0
    runs: bool = False
    result: CheckResult | None = None
    text: str = ""


def probe(asked: GuestCheck, ping: Ping) -> str:
    """Return why a member is not well, by all of its checks; empty: it is. Raises Unknown."""
    checks = asked.checks
    if checks.needs_address and not asked.address:
        raise Unknown("It has no address on a network that its host's agent reaches.")
    if checks.agent and (why := ping(asked)):
        return why
    try:
        if checks.tcp_port:
            probes.tcp(asked.address, checks.tcp_port)
    except Refused as error:
        return str(error)
    if not checks.url:
        return ""
    try:
        where = health_checks.parsed(checks.url, asked.name)
        return probes.http(
            asked.address, where, asked.name, verify=checks.verify, contains=checks.contains
        )
    except Refused as error:
        return str(error) if checks.refused_is_sick else ""


class HealthChecks:
    """The members on a worker's hosts; see above."""

    def __init__(
        self,
        ask: Callable[[], Sequence[GuestCheck]],
        report: Callable[[Sequence[GuestHealth]], None],
        check: Callable[[GuestCheck], str],
        at_once: int,
        timer: Callable[[], float] = time.monotonic,
        threads: Executor | None = None,
    ) -> None:
        """``ask`` and ``report`` may raise MicronovaError; ``check`` is ``probe``."""
        self._ask, self._report, self._check = ask, report, check
        self._at_once, self._timer = at_once, timer
        self._members: dict[str, _Member] = {}
        self._asked_at = float("-inf")
        self._changed = threading.Condition()
        self._stopped, self._ended = False, False
        self._threads = threads or ThreadPoolExecutor(max(1, at_once), "compute-health")
        self._thread = threading.Thread(target=self._loop, name="compute-health", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        if self._at_once:
            self._thread.start()

    def stop(self) -> None:
        """Begin no more checks."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(1)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _loop(self) -> None:
        while not self._stopped:
            try:
                wait = self.turn()
            except Exception:
                # Without this thread no member would be checked until the worker is restarted.
                LOG.exception("The members of groups were not checked; trying again.")
                loops.failed(_NAME)
                wait = ASK_SECONDS
            else:
                loops.done(_NAME, ASK_SECONDS)
            with self._changed:
                self._changed.wait_for(lambda: self._stopped or self._ended, wait)
                self._ended = False

    def turn(self) -> float:
        """Ask, report, and begin the checks that are due; return the seconds until the next."""
        now = self._timer()
        if now - self._asked_at >= ASK_SECONDS:
            self._asked_at = now
            self._refresh()
        self._send()
        with self._changed:
            waiting = [one for one in self._members.values() if not one.runs]
            for one in waiting:
                if one.due <= now:
                    one.runs = True
                    self._threads.submit(self._run, one)
            times = [one.due - now for one in waiting if not one.runs]
        return max(0.0, min([*times, self._asked_at + ASK_SECONDS - now]))

    def _refresh(self) -> None:
        """Take over which members are checked; those that were known go on as they are."""
        try:
            found = self._ask()
        except MicronovaError as error:
            LOG.info("Which members of groups are checked is not known: %s", error.message)
            return
        with self._changed:
            before, self._members = self._members, {}
            for one in found:
                self._members[one.server_uuid] = self._member(one, before.get(one.server_uuid))

    def _member(self, asked: GuestCheck, before: _Member | None) -> _Member:
        if before is not None and _is_same(before.asked, asked):
            before.asked = asked
            return before
        # A member that was not listed may have been started since, as after a reboot.
        grace = clock.after(asked.checks.grace_seconds)
        return _Member(asked, max(asked.begins_at, grace), self._timer())

    def _run(self, member: _Member) -> None:
        """Check a member once, on a thread of the pool."""
        asked = member.asked
        result: CheckResult | None
        try:
            text = self._check(asked)
        except Unknown as error:
            result, text = CheckResult.UNKNOWN, str(error)
        except Exception:
            # Nobody waits for this result; the member is checked again after its interval.
            LOG.exception("Server %s was not checked.", asked.server_uuid)
            result, text = None, ""
        else:
            result = CheckResult.SICK if text else CheckResult.WELL
        with self._changed:
            self._note(member, result, text)
            member.runs, self._ended = False, True
            self._changed.notify_all()

    def _note(self, member: _Member, result: CheckResult | None, text: str) -> None:
        checks = member.asked.checks
        failed = result == CheckResult.SICK
        member.due = self._timer() + (checks.retry_seconds if failed else checks.interval_seconds)
        if not failed:
            member.failures = 0
        elif clock.utcnow() >= member.counts_from:
            member.failures += 1
        if failed and member.failures < checks.threshold:
            return
        # That it can't be seen now changes nothing that was seen before.
        known = member.result or member.asked.known
        if result is not None and (result != CheckResult.UNKNOWN or known is None):
            member.result, member.text = result, text

    def _send(self) -> None:
        with self._changed:
            news = [one for one in self._members.values() if _is_to_be_sent(one)]
            found = [
                GuestHealth(one.asked.server_uuid, one.asked.begins_at, one.result, one.text)
                for one in news
                if one.result is not None
            ]
        if not found:
            return
        try:
            self._report(found)
        except MicronovaError as error:
            LOG.info("The health of %d members is reported later: %s", len(found), error.message)
            return
        with self._changed:
            for one, sent in zip(news, found, strict=True):
                one.asked = _known(one.asked, sent.result)


def _is_same(before: GuestCheck, now: GuestCheck) -> bool:
    """Return whether a member is checked as before: only its reported result may differ."""
    return _known(before, None) == _known(now, None)


def _known(asked: GuestCheck, result: CheckResult | None) -> GuestCheck:
    values = {**vars(asked), "known": result}
    return GuestCheck(**values)


def _is_to_be_sent(one: _Member) -> bool:
    return one.result is not None and one.result != one.asked.known
