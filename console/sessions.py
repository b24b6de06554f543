"""Browsers that wait for their server's agent, and how many sessions there are."""

from __future__ import annotations

import contextlib
import hashlib
import queue
import secrets
import threading
from collections.abc import Callable, Iterator

from common.counting import counted
from common.errors import Unavailable
from common.metrics import table
from common.metrics.instruments import Samples
from common.streams import Stream

_GRANT_BYTES = 32


class _Expected:
    """A session that an agent is to join."""

    def __init__(self) -> None:
        self.agent: queue.Queue[Stream] = queue.Queue(1)
        self.ended = threading.Event()


class Sessions:
    """The sessions of one proxy."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._open = 0
        self._expected: dict[bytes, _Expected] = {}
        table.CONSOLE_SESSIONS.watch(self._sample)

    def _sample(self) -> Samples:
        with self._lock:
            return {(): self._open}

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        """Hold a place for a session. Raises Unavailable while all are taken."""
        with self._lock:
            if self._open >= self._most:
                raise Unavailable(f"This proxy has {counted(self._most, 'console')} open.")
            self._open += 1
        session = Session(self)
        try:
            yield session
        finally:
            session.end()
            with self._lock:
                self._open -= 1

    def expect(self, grant: str) -> _Expected:
        """Wait from now on for an agent with this grant."""
        with self._lock:
            return self._expected.setdefault(_key(grant), _Expected())

    def forget(self, grant: str) -> None:
        """Wait no longer."""
        with self._lock:
            self._expected.pop(_key(grant), None)

    def join(self, grant: str, agent: Stream, opened: Callable[[], None]) -> bool:
        """Hand an agent's stream to the session of its grant, and return at the session's end.

        `opened` is called once it is handed over. False: no session waits for it; a grant can be
        used once.
        """
        with self._lock:
            found = self._expected.pop(_key(grant), None)
        if found is None:
            return False
        found.agent.put(agent)
        opened()
        found.ended.wait()
        return True


class Session:
    """One browser's session."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self.grant = secrets.token_urlsafe(_GRANT_BYTES)
        """For the agent: proves that it belongs to this session."""
        self._expected = sessions.expect(self.grant)

    def agent(self, seconds: float) -> Stream:
        """Wait for the agent's stream. Raises Unavailable."""
        try:
            return self._expected.agent.get(timeout=seconds)
        except queue.Empty:
            raise Unavailable("The agent did not connect to the proxy.") from None

    def end(self) -> None:
        """End it: an agent that comes later is refused."""
        self._sessions.forget(self.grant)
        self._expected.ended.set()


def _key(grant: str) -> bytes:
    # Looked up by its hash, so that how long it takes says nothing about the grant.
    return hashlib.sha256(grant.encode()).digest()
