"""Start or stop of a VM under HA: a request that the manager carries out later.

`status/start` and the like only call `ha-manager`; their task, `hastart` or `hastop`, ends OK at
once, even if the start or stop fails. Resources in the state `ignored` count as not managed.
"""

from __future__ import annotations

from simulator.engine import Process, Sleep, Work
from simulator.errors import PveError
from simulator.request.call import Call
from simulator.state.cluster import Cluster
from simulator.state.ha_config import HaResource
from simulator.state.tasks import Job

#: the managers of cluster and node look every ten seconds each
MANAGER_SECONDS = 15.0


def resource(cluster: Cluster, vmid: int) -> HaResource | None:
    """Return the HA resource of a VM, if HA manages it."""
    found = cluster.ha.resources.get(f"vm:{vmid}")
    return None if found is None or found.options.get("state") == "ignored" else found


def shown(cluster: Cluster, vmid: int) -> dict[str, object]:
    """Return the part `ha` of `status/current`."""
    found = resource(cluster, vmid)
    if found is None:
        return {"managed": 0}
    return {"managed": 1, "state": found.options.get("state", "started")}


def request(call: Call, state: str, work: Work) -> str:
    """Ask the manager for a state; `work` is what it then does."""
    kind, verb = ("hastart", "start") if state == "started" else ("hastop", "stop")

    def body(job: Job) -> Work:
        job.log(f"Requesting HA {verb} for VM {call.vmid}")
        found = resource(call.cluster, call.vmid)
        if found is None:
            raise PveError(f"no such resource 'vm:{call.vmid}'")
        found.options["state"] = state
        call.cluster.save("ha-resource", found.sid, found)
        manager = _manage(call.cluster, call.vmid, state, work)
        process = Process(manager, call.cluster.turn)
        call.cluster.background.add(process)
        process.on_end = call.cluster.background.discard
        call.cluster.engine.spawn(process)
        yield Sleep(0.1)

    return call.start(kind, call.vmid, body)


def _manage(cluster: Cluster, vmid: int, state: str, work: Work) -> Work:
    yield Sleep(MANAGER_SECONDS)
    found = resource(cluster, vmid)
    if found is None or found.options.get("state") != state or vmid not in cluster.vms:
        work.close()
        return
    try:
        yield from work
    except PveError:
        # It tries again and gives up in the end.
        found.options["state"] = "error"
        cluster.save("ha-resource", found.sid, found)
