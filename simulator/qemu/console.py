"""Consoles and QEMU's monitor: the calls before a connection, which isn't simulated."""

from __future__ import annotations

import base64
import secrets
import time
from typing import Any

from simulator.call import Call
from simulator.engine import Sleep, Work
from simulator.errors import PveError
from simulator.tasks import Job

VISITOR_SECONDS = 10.0
FIRST_PORT, PORTS = 5900, 100
CERTIFICATE = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"


def vnc(call: Call) -> dict[str, Any]:
    """`vncproxy`: a port and a ticket for it; the task times out, as nobody can connect."""
    vm = call.vm()

    def body(job: Job) -> Work:
        job.log(f"starting vnc proxy {job.task.upid}")
        yield Sleep(VISITOR_SECONDS)
        raise PveError("connection timed out")

    waiting = sum(one.type == "vncproxy" for one in call.cluster.tasks.active())
    upid = call.start("vncproxy", vm.vmid, body)
    signature = base64.b64encode(secrets.token_bytes(32)).decode()
    return {
        "cert": CERTIFICATE,
        "password": secrets.token_urlsafe(6),
        "port": str(FIRST_PORT + waiting % PORTS),
        "ticket": f"PVEVNC:{int(time.time()):08X}::{signature}",
        "upid": upid,
        "user": call.who.authid,
    }


def spice(call: Call) -> None:
    """`spiceproxy`: fails, as simulated VMs have no such display."""
    vm = call.vm()
    if not vm.running:
        raise PveError(f"VM {vm.vmid} not running")
    raise PveError("no spice port")


def terminal(call: Call) -> None:
    """`termproxy`: fails, as simulated VMs have no terminal."""
    vm = call.vm()
    if "serial0" not in vm.config:
        raise PveError("unable to find a serial interface")
    raise PveError("no terminal is simulated")


def monitor(call: Call) -> str:
    """`monitor`: answers only the command for the VM's state."""
    vm, command = call.vm(), call.get("command")
    if command != "info status":
        raise PveError(
            f"command '{command}' non-existent or not assigned a required permission yet, "
            "limiting to root user"
        )
    if not vm.running:
        raise PveError(f"VM {vm.vmid} not running")
    return f"VM status: {vm.qmp}\r\n"
