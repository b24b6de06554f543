"""Makes messages of what is in the outbox, with what the database has besides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oslo_config import cfg

from common import clock, codec, ids
from common.resources.audit_periods import AuditPeriods, Window
from conductor.notifications import events, unversioned, versioned
from conductor.notifications.bus import Message
from conductor.notifications.config import BUS_GROUP, GROUP
from conductor.notifications.subject import Subject
from conductor.store.outbox import notification_outbox as outbox
from conductor.store.outbox.notification_outbox import Entry
from conductor.store.transactions import Transaction

#: more is not sent
MAX_BYTES = 1 << 20


class Composer:
    """Makes messages in the configured formats."""

    def __init__(self, conf: cfg.ConfigOpts, name: str) -> None:
        """``name`` is the conductor's."""
        options, self._name = conf[GROUP], name
        kind = options.notification_format
        self._versioned = [] if kind == "unversioned" else options.versioned_notifications_topics
        self._unversioned = [] if kind == "versioned" else conf[BUS_GROUP].topics
        self._with_volumes = bool(options.bdms_in_notifications)
        self._periods = AuditPeriods.parse(options.instance_usage_audit_period)

    def subjects(self, connection: Transaction, entries: Sequence[Entry]) -> dict[int, Subject]:
        """Return the subject of each; three to five statements for all."""
        uuids = [one.server_uuid for one in entries if one.server_uuid]
        numbers = [one.operation_id for one in entries if one.operation_id]
        servers = outbox.servers_of(connection, uuids) if uuids else {}
        requests = outbox.requests_of(connection, numbers) if numbers else {}
        failed = [
            one.operation_id
            for one in entries
            if one.operation_id and events.parted(one.event)[1] == events.ERROR
        ]
        faults = outbox.faults_of(connection, failed) if failed else {}
        attached = outbox.volumes_of(connection, uuids) if self._with_volumes and uuids else {}
        found = {}
        for one in entries:
            row = servers.get(one.server_uuid or "")
            server = None if row is None else {**row, **one.body.get("server", {})}
            request = requests.get(one.operation_id or 0)
            uuid = one.server_uuid or ""
            found[one.id] = Subject(
                event=one.event,
                at=one.at,
                context=one.body.get("context") or _context(request),
                body=one.body,
                audit_period=self._audit_period(one),
                server=server,
                plan=None if request is None else request.plan,
                failed=None if request is None else request.message,
                fault=faults.get(one.operation_id or 0),
                volumes=attached.get(uuid, []) if self._with_volumes else None,
                publisher=self._publisher(server),
            )
        return found

    def _audit_period(self, one: Entry) -> Window:
        period = one.body.get("audit_period")
        if period is None:
            return self._periods.current(one.at)
        begin, end = map(clock.parse, period)
        return begin, end

    def _publisher(self, server: Mapping[str, Any] | None) -> tuple[str, str]:
        if server is None:
            return "api", self._name
        host = server["host"]
        return ("compute", str(host)) if host else ("conductor", self._name)

    def messages(self, entry: Entry, subject: Subject) -> list[tuple[str, Message]]:
        """Return it for each topic. Raises ValueError where it is too large to be sent."""
        found: list[tuple[str, Message]] = []
        if self._versioned:
            payload = versioned.payload(subject)
            message = _message(entry.message_id, subject, entry.event, "nova-{}:{}", payload)
            found += [(topic, message) for topic in self._versioned]
        older = unversioned.event_type(entry.event) if self._unversioned else None
        if older is not None:
            # It is another message: of one id a consumer may take one only.
            number = ids.named("notification", f"{entry.message_id} {older}")
            payload = unversioned.payload(subject)
            message = _message(number, subject, older, "{}.{}", payload)
            found += [(topic, message) for topic in self._unversioned]
        return found


def _message(
    number: str, subject: Subject, event_type: str, publisher: str, payload: dict[str, Any]
) -> Message:
    """Return a message; ``publisher`` is the form of the publisher's name in its format.

    Raises ValueError where it is too large to be sent.
    """
    size = len(codec.dumps(payload))
    if size > MAX_BYTES:
        raise ValueError(f"it has {size} bytes, more than {MAX_BYTES}")
    return Message(
        message_id=number,
        publisher=publisher.format(*subject.publisher),
        event_type=event_type,
        priority=subject.priority,
        payload=payload,
        at=subject.at,
        context=subject.context,
    )


def _context(request: outbox.Request | None) -> Mapping[str, Any]:
    return {} if request is None else request.context
