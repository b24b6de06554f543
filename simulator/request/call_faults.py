"""The effect of injected faults on calls."""

from __future__ import annotations

from simulator.engine import Acquire, Process, Release, Sleep, Work
from simulator.errors import Dropped, PveError
from simulator.request.call import Call
from simulator.state.cluster import Cluster
from simulator.state.faults import Fault

HANG_SECONDS = 30.0
HELD_SECONDS = 1_000_000.0
LOST = 596

#: the answers of a proxying node that can't reach the other one; these have no body
PROXY_TEXTS = {
    595: "No route to host",
    596: "Connection timed out",
    597: "Connection reset by peer",
    598: "User aborted request",
    599: "Too many redirections",
}


def before(fault: Fault) -> Work:
    """Apply a fault that strikes before anything is done."""
    if fault.action == "fail":
        raise _answer(fault, fault.status or 500, "simulated failure")
    if fault.action == "drop":
        raise Dropped
    if fault.action == "slow":
        yield Sleep(fault.seconds)
    if fault.action == "hang":
        yield Sleep(fault.seconds or HANG_SECONDS)
        raise _answer(fault, fault.status or LOST)
    if fault.action == "hold" and fault.how != "after":
        yield from _held(fault)


def after(fault: Fault, call: Call) -> Work:
    """Apply a fault that strikes when everything is done, or in the started task."""
    if fault.action in ("task-fail", "task-kill"):
        for upid in call.started:
            work = _strike(call.cluster, fault, upid)
            call.cluster.engine.spawn(Process(work, call.cluster.turn))
    if fault.action == "lose-answer":
        yield Sleep(fault.seconds)
        if fault.how == "drop":
            raise Dropped
        raise _answer(fault, fault.status or LOST)
    if fault.action == "hold" and fault.how == "after":
        yield from _held(fault)


def _answer(fault: Fault, status: int, otherwise: str = "") -> PveError:
    text = fault.text or PROXY_TEXTS.get(status, otherwise or "simulated failure")
    return PveError(text, status, body=status != 401 and status not in PROXY_TEXTS)


def _held(fault: Fault) -> Work:
    """Wait until the fault is removed."""
    if (yield Acquire(fault.gate, HELD_SECONDS, shared=True)):
        yield Release(fault.gate)


def _strike(cluster: Cluster, fault: Fault, upid: str) -> Work:
    yield Sleep(fault.seconds)
    if fault.action == "task-kill":
        cluster.tasks.kill(upid)
    else:
        cluster.tasks.fail(upid, fault.text or "simulated task failure")
