"""Sessions: the data stored on the server about a user who is logged in."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol, TypeAlias

from cryptography.fernet import Fernet, InvalidToken

#: a session is noted as used at most this often
_TOUCH_SECONDS = 60.0
_FLASHES = 5
#: (kind, sentence, request ID) each
Flashes: TypeAlias = tuple[tuple[str, str, str], ...]


class Store(Protocol):
    """Stores bytes by key until they expire; shared by all workers."""

    def get(self, key: str, now: float) -> bytes | None:
        """Return the value of a key; None if it does not exist or has expired."""

    def put(self, key: str, value: bytes, until: float) -> None:
        """Store a value."""

    def replace(self, key: str, value: bytes, until: float) -> None:
        """Overwrite the value of a key; do nothing if the key does not exist."""

    def delete(self, key: str) -> None:
        """Delete a key."""

    def count(self, key: str, now: float, seconds: int, *, more: int) -> int:
        """Add to a counter atomically; return its value. It is reset after ``seconds``."""

    def forget(self, key: str) -> None:
        """Reset a counter."""


@dataclass(frozen=True)
class Session:
    """One login."""

    token: str = field(repr=False)
    access: Mapping[str, Any] = field(repr=False)
    """Keystone's body of the token."""
    projects: tuple[tuple[str, str], ...]
    """(ID, name) of the user's projects."""
    csrf: str = field(repr=False)
    began: float
    seen: float
    until: float
    """When it ends at the latest."""
    flashes: Flashes = ()
    """What the next page shows."""

    def noting(self, kind: str, text: str, request_id: str = "") -> Session:
        """Return it with a sentence for the next page."""
        return replace(self, flashes=(*self.flashes, (kind, text, request_id))[-_FLASHES:])


class Sessions:
    """Sessions in a store, each encrypted with a key that only its cookie and ours together give.

    The store holds a hash of the ID: nobody who reads it can use a session.
    """

    def __init__(
        self, store: Store, key: bytes, idle_seconds: int, clock: Callable[[], float]
    ) -> None:
        self.store = store
        self._key, self._idle, self._clock = key, idle_seconds, clock

    def begin(self, session: Session) -> str:
        """Keep a new session; return its ID."""
        name = secrets.token_urlsafe(32)
        self.store.put(*self._kept(name, session))
        return name

    def read(self, name: str) -> Session | None:
        """Return the session of an ID, which counts as used; None: it has ended."""
        now = self._clock()
        kept = self.store.get(self._hash(name), now)
        if kept is None:
            return None
        try:
            facts = json.loads(self._cipher(name).decrypt(kept))
        except InvalidToken:
            return None
        facts["projects"] = tuple(map(tuple, facts["projects"]))
        facts["flashes"] = tuple(map(tuple, facts["flashes"]))
        session = Session(**facts)
        if now >= min(session.until, session.seen + self._idle):
            self.end(name)
            return None
        if now - session.seen > self._touch_seconds:
            session = replace(session, seen=now)
            self.write(name, session)
        return session

    def write(self, name: str, session: Session) -> None:
        """Store a changed session; do nothing if it has ended since it was read."""
        self.store.replace(*self._kept(name, session))

    def show(self, name: str, before: Flashes, after: Flashes) -> None:
        """Add the messages of a request to the session, and remove those that it has shown.

        The session is read again, so that changes by concurrent requests are preserved.
        """
        session = self.read(name)
        if session is not None:
            left = tuple(one for one in session.flashes if one not in before or one in after)
            session = replace(session, flashes=left)
            for one in after:
                session = session if one in before else session.noting(*one)
            self.write(name, session)

    def using(self, name: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces of a long upload; until it ends, its session counts as used."""
        read_at = self._clock()
        for piece in pieces:
            if self._clock() - read_at > self._touch_seconds:
                self.read(name)
                read_at = self._clock()
            yield piece

    def end(self, name: str) -> None:
        """Delete a session."""
        self.store.delete(self._hash(name))

    def signed(self, text: str) -> str:
        """Return what proves that a text is ours."""
        return hmac.new(self._key, f"sign {text}".encode(), hashlib.sha256).hexdigest()

    @property
    def _touch_seconds(self) -> float:
        return min(_TOUCH_SECONDS, self._idle / 4)

    def _kept(self, name: str, session: Session) -> tuple[str, bytes, float]:
        """Return the key, the encrypted value and the expiry of a session in the store."""
        content = self._cipher(name).encrypt(json.dumps(asdict(session)).encode())
        return self._hash(name), content, min(session.until, session.seen + self._idle)

    def _hash(self, name: str) -> str:
        return hmac.new(self._key, f"name {name}".encode(), hashlib.sha256).hexdigest()

    def _cipher(self, name: str) -> Fernet:
        digest = hmac.new(self._key, f"content {name}".encode(), hashlib.sha256).digest()
        return Fernet(base64.urlsafe_b64encode(digest))
