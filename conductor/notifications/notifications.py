"""Notifications of one conductor: the outbox that its transactions write, and what sends it."""

from __future__ import annotations

from oslo_config import cfg

from common.log import logger
from conductor.engine.periodic import Periodic
from conductor.notifications.bus import Bus
from conductor.notifications.config import GROUP, enabled
from conductor.notifications.recorder import Outbox
from conductor.notifications.sender import Sender
from conductor.notifications.usage_audit import NAME, SECONDS, UsageAudits
from conductor.store.transactions import Store

LOG = logger(__name__)

_BOUND, _BOUND_SECONDS = "bound_notifications", 10.0


class Notifications:
    """Records and sends."""

    @classmethod
    def of(cls, conf: cfg.ConfigOpts, store: Store, name: str) -> Notifications | None:
        """Return those of a conductor of this name; None where they are off.

        Raises ConfigurationError for what can't be served.
        """
        return cls(conf, store, name) if enabled(conf) else None

    def __init__(self, conf: cfg.ConfigOpts, store: Store, name: str) -> None:
        self._bus = Bus(conf)
        self._sender = Sender(conf, store, name, self._bus.send)
        options, wake = conf[GROUP], self._sender.wake
        recorder = Outbox(options.notify_on_state_change, wake)
        store.recorders = (*store.recorders, recorder)
        self._audits: UsageAudits | None = None
        if options.instance_usage_audit:
            period, most = options.instance_usage_audit_period, options.max_pending
            self._audits = UsageAudits(store, period, most, wake)

    @property
    def periodic(self) -> tuple[Periodic, ...]:
        """Periodic tasks: what bounds the outbox, also while nothing can be sent, and audits."""
        bound = Periodic(_BOUND, _BOUND_SECONDS, self._sender.bound)
        if self._audits is None:
            return (bound,)
        return bound, Periodic(NAME, SECONDS, self._audits.look, alone=True)

    def start(self) -> None:
        """Begin to send."""
        self._sender.start()

    def stop(self) -> None:
        """Send no more; what is left is sent by another conductor, or after the next start."""
        self._sender.stop()
        self._bus.close()
