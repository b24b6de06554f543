"""The lock of the SDN configuration, applying the configuration and rolling it back."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from simulator.engine import Sleep, Work
from simulator.errors import PveError
from simulator.request.call import Call
from simulator.state.tasks import Job

RELOAD_SECONDS = 3.0
NOT_THE_HOLDER = "invalid lock token provided! at /usr/share/perl5/PVE/Network/SDN.pm line 291."


@contextmanager
def changing(call: Call, failed: str) -> Iterator[None]:
    """Change the configuration under its lock; error messages begin with `failed`."""
    held = call.cluster.sdn.lock
    try:
        if held and call.get("lock-token") != held:
            raise PveError(NOT_THE_HOLDER)
        yield
    except PveError as error:
        raise PveError(f"{failed}: {error.task_text}") from error
    save(call)


def save(call: Call) -> None:
    """Mark the configuration to be saved when the mutex is released."""
    call.cluster.save("sdn", "sdn", call.cluster.sdn)


def take(call: Call) -> str:
    """`POST /cluster/sdn/lock`: return the token that further changes must name."""
    found = call.cluster.sdn
    with changing(call, "could not acquire lock for SDN config"):
        if found.pending and not call.flag("allow-pending"):
            raise PveError("configuration has pending changes")
        found.lock = str(uuid.uuid4())
    return found.lock


def release(call: Call) -> None:
    """`DELETE /cluster/sdn/lock`: with `force` without the token."""
    if call.flag("force"):
        call.cluster.sdn.lock = ""
        save(call)
        return
    with changing(call, "could not release lock"):
        call.cluster.sdn.lock = ""


def _release_if_asked(call: Call) -> None:
    if call.get("lock-token") and call.get("release-lock", "1") == "1":
        call.cluster.sdn.lock = ""


def roll_back(call: Call) -> None:
    """`POST /cluster/sdn/rollback`: discard changes that were not applied."""
    with changing(call, "could not rollback SDN config"):
        call.cluster.sdn.roll_back()
        _release_if_asked(call)


def apply(call: Call) -> str:
    """`PUT /cluster/sdn`: apply the configuration; it runs once the nodes have reloaded."""
    cluster = call.cluster
    with changing(call, "could not commit SDN config"):
        cluster.sdn.apply()
        _release_if_asked(call)

    def body(job: Job) -> Work:
        yield Sleep(RELOAD_SECONDS)
        for node in cluster.nodes.values():
            if not node.up or cluster.faults.standing("no-reload", node=node.name):
                job.warn(f"{node.name}: error running 'reload network config'")
                continue
            job.log(f"{node.name}: reloading network config")
            node.sdn_version = cluster.sdn.version
            cluster.save("node", node.name, node)

    node = cluster.node(call.contacted)
    return cluster.tasks.start(node, "reloadnetworkall", "", call.who, body)
