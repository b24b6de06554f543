"""The topics of the message bus."""

from __future__ import annotations

#: topics of the message bus
CONDUCTOR_TOPIC = "conductor"
#: what agents, schedulers and console proxies send to conductors: see ``common.rpc.senders``
CONDUCTOR_EVENTS_TOPIC = "conductor_events"
SCHEDULER_TOPIC = "scheduler"
COMPUTE_TOPIC = "compute"
#: fanout: facts about hosts, for schedulers (``update_hosts``)
HOST_FACTS_TOPIC = "host_facts"
#: fanout to the agents, from services that start: "publish everything" (``announce``)
ANNOUNCE_TOPIC = "compute_announce"


def alive(binary: str) -> str:
    """Return the topic on which a conductor or scheduler sends itself heartbeats."""
    return f"alive.{binary}"
