"""The topics of the message bus."""

from __future__ import annotations

#: topics of the message bus
CONDUCTOR_TOPIC = "conductor"
SCHEDULER_TOPIC = "scheduler"
COMPUTE_TOPIC = "compute"
#: fanout: facts about hosts, for whoever follows them (``update_hosts``)
HOST_FACTS_TOPIC = "host_facts"
#: fanout to the agents: "say all you know" (``announce``), from somebody who just started
ANNOUNCE_TOPIC = "compute_announce"
