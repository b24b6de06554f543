"""The agent of a compute host, to be asked about its node."""

from __future__ import annotations

from dataclasses import dataclass

from common.context import RequestContext
from common.errors import Unavailable
from common.messages.facts import HostFacts
from common.messages.questions import Agent, ListTasks
from common.messages.tasks import TaskFacts
from conductor.cloud import Cloud, silence
from conductor.store.hosts import registry


@dataclass(frozen=True)
class HostAgent:
    """A host, and the worker that carries its agent."""

    facts: HostFacts
    worker: str | None
    """None: it doesn't answer."""

    @property
    def target(self) -> Agent:
        """Where questions are sent. Raises Unavailable."""
        if self.worker is None:
            raise Unavailable(silence(self.facts.host))
        return Agent(self.worker, self.facts.cluster)


def of_host(cloud: Cloud, host: str) -> HostAgent:
    """Return the agent of a host. Raises HostNotFound."""
    with cloud.store.read() as connection:
        facts, _ = registry.host(connection, host)
        return HostAgent(facts, cloud.worker_of(connection, host))


def tasks(cloud: Cloud, ctxt: RequestContext, host: str, limit: int) -> list[TaskFacts]:
    """See ``ConductorRpc.list_host_tasks``."""
    agent = of_host(cloud, host)
    return cloud.compute.ask(ctxt, agent.target, ListTasks(agent.facts.node, limit))
