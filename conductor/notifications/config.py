"""Options of notifications: Nova's and oslo.messaging's, under their names."""

from __future__ import annotations

from oslo_config import cfg

from common.errors import ConfigurationError
from common.resources import audit_periods
from common.rpc.messaging import messaging_options

GROUP = "notifications"
#: oslo.messaging's group
BUS_GROUP = "oslo_messaging_notifications"

#: what is read of it: when to try again is decided here
_READ = frozenset({"driver", "transport_url", "topics"})

#: drivers that send nothing, and those that do
SILENT = frozenset({"noop"})
SENDING = frozenset({"messagingv2", "messaging"})

OPTIONS = [
    cfg.StrOpt(
        "notification_format",
        default="unversioned",
        choices=[
            ("versioned", "Nova's versioned notifications, to versioned_notifications_topics"),
            ("unversioned", "Nova's older ones, to [oslo_messaging_notifications] topics"),
            ("both", "each of them"),
        ],
        help="Which notifications are sent once [oslo_messaging_notifications] driver is "
        "messagingv2. Ceilometer and Designate read the unversioned ones.",
    ),
    cfg.ListOpt(
        "versioned_notifications_topics",
        default=["versioned_notifications"],
        help="Topics of versioned notifications; each gets every one of them.",
    ),
    cfg.StrOpt(
        "notify_on_state_change",
        choices=[
            ("vm_state", "when the vm_state changes"),
            ("vm_and_task_state", "when the vm_state or the task_state changes"),
        ],
        help="When instance.update is sent, besides changes of tags. Not set: for no other.",
    ),
    cfg.BoolOpt(
        "bdms_in_notifications",
        default=False,
        help="Whether versioned notifications list the volumes of a server.",
    ),
    cfg.BoolOpt(
        "instance_usage_audit",
        default=False,
        help="Whether instance.exists is sent at the end of each audit period, for every server "
        "that existed in it. In Nova: [DEFAULT] instance_usage_audit.",
    ),
    cfg.StrOpt(
        "instance_usage_audit_period",
        default=audit_periods.DEFAULT,
        regex=audit_periods.PATTERN,
        help="The audit period: hour, day, month or year, in UTC, each with @ and the minute, "
        "hour, day (to 28) or month that it begins with, such as month@15. In Nova: "
        "[DEFAULT] instance_usage_audit_period.",
    ),
    cfg.StrOpt(
        "control_exchange",
        default="nova",
        help="The exchange of notifications, where consumers bind their queues.",
    ),
    cfg.StrOpt(
        "queue_type",
        choices=[
            ("quorum", "as consumers with rabbit_quorum_queue = true declare it"),
            ("durable", "classic, with amqp_durable_queues = true"),
            ("classic", "classic, without: oslo.messaging's own default"),
        ],
        help="How queues of notifications are declared if they don't exist yet. Consumers "
        "must declare them alike, or RabbitMQ refuses the second declaration. Not set: as "
        "[oslo_messaging_rabbit] says, which is quorum by default.",
    ),
    cfg.IntOpt(
        "max_pending",
        default=100_000,
        min=1,
        help="Notifications that are stored while they can't be sent. Beyond this number the "
        "oldest are dropped, and counted.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Declare this module's options and oslo.messaging's; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)
    conf.register_opts(bus_options(), group=BUS_GROUP)


def bus_options() -> list[cfg.Opt]:
    """Return those options of oslo.messaging's that are read."""
    theirs: dict[str, list[cfg.Opt]] = dict(messaging_options.list_opts())
    return [option for option in theirs[BUS_GROUP] if option.name in _READ]


def enabled(conf: cfg.ConfigOpts) -> bool:
    """Return whether notifications are to be sent.

    Raises ConfigurationError for drivers and buses that can't be served.
    """
    drivers = set(conf[BUS_GROUP].driver) - SILENT
    if not drivers:
        return False
    if drivers - SENDING:
        raise ConfigurationError(
            f"[{BUS_GROUP}] driver: {', '.join(sorted(drivers - SENDING))} is not supported; "
            "notifications are sent with messagingv2 or messaging."
        )
    if len(drivers) > 1:
        raise ConfigurationError(f"[{BUS_GROUP}] driver: name one, messagingv2 or messaging.")
    url = bus_url(conf)
    if not url or url.startswith("micronova-local:"):
        raise ConfigurationError(
            "The embedded cloud's message bus has no listeners outside of it: notifications need "
            f"a RabbitMQ of their own. Set [{BUS_GROUP}] transport_url, or leave driver empty."
        )
    return True


def bus_url(conf: cfg.ConfigOpts) -> str | None:
    """Return where notifications are sent."""
    url: str | None = conf[BUS_GROUP].transport_url or conf.transport_url
    return url
