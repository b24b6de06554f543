"""A conductor of a test that sends notifications, and a bus that the test holds."""

from __future__ import annotations

import threading
from typing import Any

from conductor.notifications.bus import BusError, Message
from conductor.notifications.recorder import Outbox
from conductor.notifications.sender import Sender
from tests.functional.conductor.harness import Conductor

VERSIONED, UNVERSIONED = "versioned_notifications", "notifications"


class Bus:
    """Records what it is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Message]] = []
        self.down = False
        self.refuses: set[str] = set()
        """Event types that it doesn't take."""
        self.breaks: set[str] = set()
        """Event types that break what sends them."""
        self._news = threading.Condition()

    def send(self, topic: str, message: Message) -> None:
        if self.down or message.event_type in self.refuses:
            raise BusError("connection refused")
        if message.event_type in self.breaks:
            raise RuntimeError("a bug")
        with self._news:
            self.sent.append((topic, message))
            self._news.notify_all()

    def wait_for(self, count: int) -> None:
        """Wait until so many were sent."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.sent) >= count, 20), self.names()

    def names(self, topic: str = VERSIONED) -> list[str]:
        """The event types that a topic got, in order."""
        return [message.event_type for name, message in self.sent if name == topic]

    def last(self, event_type: str) -> Message:
        """The last one of an event type."""
        found = [message for _, message in self.sent if message.event_type == event_type]
        assert found, self.names()
        return found[-1]


def data(message: Message) -> Any:
    """The fields of a versioned payload."""
    return message.payload["nova_object.data"]


def send_notifications(
    conductor: Conductor,
    bus: Bus,
    *,
    kind: str = "both",
    on_state_change: str | None = None,
    **options: Any,
) -> Sender:
    """Have a conductor record what it does; return what sends it when the test says so."""
    conf = conductor.cloud.conf
    for name, value in {"notification_format": kind, **options}.items():
        conf.set_override(name, value, group="notifications")
    sender = Sender(conf, conductor.store, conductor.cloud.name, bus.send)
    conductor.store.recorders = (Outbox(on_state_change, sender.wake),)
    return sender
