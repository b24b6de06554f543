"""What an ordered fault does to the call that it strikes."""

from __future__ import annotations

from simulator.call import Call
from simulator.cluster import Cluster
from simulator.engine import Process, Sleep, Work
from simulator.errors import Dropped, PveError
from simulator.faults import Fault

HANG_SECONDS = 30.0


def before(fault: Fault) -> Work:
    """A fault that strikes before anything is done."""
    if fault.action == "fail":
        text = fault.text or "simulated failure"
        raise PveError(text, fault.status, body=fault.status not in (401, 595, 596))
    if fault.action == "drop":
        raise Dropped
    if fault.action == "slow":
        yield Sleep(fault.seconds)
    if fault.action == "hang":
        yield Sleep(fault.seconds or HANG_SECONDS)
        raise PveError("Connection timed out", 596, body=False)


def after(fault: Fault, call: Call) -> Work:
    """A fault that strikes when everything is done, or in the task that was started."""
    if fault.action in ("task-fail", "task-kill"):
        for upid in call.started:
            work = _strike(call.cluster, fault, upid)
            call.cluster.engine.spawn(Process(work, call.cluster.turn))
    if fault.action == "lose-answer":
        yield Sleep(fault.seconds)
        if fault.how == "drop":
            raise Dropped
        raise PveError("Connection timed out", 596, body=False)


def _strike(cluster: Cluster, fault: Fault, upid: str) -> Work:
    yield Sleep(fault.seconds)
    if fault.action == "task-kill":
        cluster.tasks.kill(upid)
    else:
        cluster.tasks.fail(upid, fault.text or "simulated task failure")
