"""Names of processes that last: the machine's host name, and a number where there are several.

A process that starts again has the name of the one before it, so that lists, queues and alerts
have one row for it. On one machine each name is held by one process at a time: by an abstract
socket, which ends with the process.
"""

from __future__ import annotations

import hashlib
import itertools
import socket
from pathlib import Path

from oslo_config import cfg

from common.errors import ConfigurationError

#: the sockets of names held by this process, by the name
_held: dict[str, socket.socket] = {}
#: a message bus within one process, which has one of each kind
_OF_ONE_PROCESS = "micronova-local:"


def of(conf: cfg.ConfigOpts, kind: str) -> str:
    """Return the name of this process among the cloud's conductors or schedulers, and hold it.

    Raises ConfigurationError if another process of this machine has the configured name.
    """
    configured, bus = conf[kind].name, str(conf.transport_url)
    if bus.startswith(_OF_ONE_PROCESS):
        return str(configured or socket.gethostname())
    return hold(kind, bus, configured)


def hold(kind: str, cloud: str, configured: str | None) -> str:
    """Do as ``of``; ``cloud`` distinguishes clouds on one machine."""
    if configured:
        if not _hold(f"{kind} {configured} {cloud}"):
            option = "worker" if kind == WORKER else "name"
            raise ConfigurationError(
                f"Another {kind} of this machine has the name {configured}. Each needs a "
                f"[{kind}] {option} of its own."
            )
        return configured
    host = socket.gethostname()
    for number in itertools.count(1):
        name = host if number == 1 else f"{host}-{number}"
        if _hold(f"{kind} {name} {cloud}"):
            return name
    raise AssertionError("not reached")


#: the kind of the names of agents' workers, which are configured
WORKER = "compute"


def hold_worker(conf: cfg.ConfigOpts, name: str) -> None:
    """Hold the name of an agents' worker. Raises ConfigurationError if another process of this
    machine holds it."""
    bus = str(conf.transport_url)
    if not bus.startswith(_OF_ONE_PROCESS):
        hold(WORKER, bus, name)


def machine(conf: cfg.ConfigOpts) -> str:
    """Return what identifies this machine since its start, and its network, to other processes.

    Of the processes of one value, no two hold a name at the same time; empty: it isn't known.
    """
    if str(conf.transport_url).startswith(_OF_ONE_PROCESS):
        return _OF_ONE_PROCESS
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/net').readlink()}"
    except OSError:
        return ""


def _hold(text: str) -> bool:
    # A password may be part of what distinguishes clouds: only a digest is shown.
    address = f"\0micronova-{hashlib.sha256(text.encode()).hexdigest()[:40]}"
    held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        held.bind(address)
    except OSError:
        held.close()
        return False
    _held[text] = held
    return True


def release(conf: cfg.ConfigOpts, kind: str, name: str) -> None:
    """Give up the name of a service that has ended before its process."""
    held = _held.pop(f"{kind} {name} {conf.transport_url}", None)
    if held is not None:
        held.close()
