"""Heartbeats of a worker with more hosts than one message holds."""

from __future__ import annotations

from oslo_config import cfg

from common import rpc
from common.messages.facts import ClusterFacts
from common.messages.queues import Queue, Queues
from compute.observed.facts import HostFactsCache
from compute.observed.vm_states import VmChanges
from compute.worker.heartbeat import FACTS_PER_MESSAGE, Heartbeats
from tests.unit.compute.fakes import some_facts


def test_each_host_is_named_once() -> None:
    conf = cfg.ConfigOpts()
    rpc.register(conf)
    conf([])
    conf.set_override("transport_url", "micronova-local://heartbeats")
    names = [f"host-{number}" for number in range(2 * FACTS_PER_MESSAGE + 1)]
    cache = HostFactsCache()
    cache.update(
        [some_facts(host=name, uuid=name) for name in names], ClusterFacts("c", "9", quorate=True)
    )
    idle = (Queue("operations", "operations", 8, shared=True),)
    queues = Queues(idle, dict.fromkeys([names[0], names[-1], "gone"], (*idle, *idle)))
    beats = Heartbeats(
        *(rpc.transport(conf), "worker", 10, cache, VmChanges("worker"), tuple),
        lambda: queues,
    )
    first = list(beats._heartbeats("worker", published=False))
    assert [len(one.facts) for one in first] == [FACTS_PER_MESSAGE, FACTS_PER_MESSAGE, 1]
    assert sorted(name for one in first for name in one.hosts) == sorted(names)
    assert [tuple(one.queues.busy) for one in first if one.queues] == [
        *((names[0],), (), (names[-1],))
    ]
    (later,) = beats._heartbeats("worker", published=False)
    assert (later.facts, sorted(later.hosts)) == ((), sorted(names))
