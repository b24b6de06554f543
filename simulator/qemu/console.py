"""Consoles and QEMU's monitor: a port for one visitor, and the websocket that leads to it."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from typing import Any

from simulator.console import screen, serial_line
from simulator.console.consoles import Listener
from simulator.console.websocket import WebSocket
from simulator.engine import Sleep, Work
from simulator.errors import PveError
from simulator.request.call import Call, Upgrade
from simulator.state.model import Vm
from simulator.state.tasks import Job

VISITOR_SECONDS = 10.0
_SERIAL = "serial0"
#: longer than any session
_SESSION_SECONDS = 1e9
CERTIFICATE = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"


class _Left(PveError):
    """The visitor has left: the task ends well."""

    def __init__(self) -> None:
        super().__init__("")


def vnc(call: Call) -> dict[str, Any]:
    """`vncproxy`: a port of the node that was asked, and a ticket for it."""
    generated = secrets.token_urlsafe(6)
    opened = _open(call, call.vm(), "vncproxy", "starting vnc proxy", generated)
    return {"cert": CERTIFICATE, "password": generated, **opened}


def spice(call: Call) -> None:
    """`spiceproxy`: fails, as simulated VMs have no such display."""
    vm = call.vm()
    if not vm.running:
        raise PveError(f"VM {vm.vmid} not running")
    raise PveError("no spice port")


def terminal(call: Call) -> dict[str, Any]:
    """`termproxy`: the same for a serial line; a port that is absent fails the visit."""
    vm = call.vm()
    interface = call.get("serial", "")
    if not interface and _SERIAL not in vm.config:
        raise PveError("unable to find a serial interface")
    return _open(call, vm, "vncproxy", "starting qemu termproxy", interface=interface or _SERIAL)


def _open(
    call: Call, vm: Vm, kind: str, text: str, password: str = "", interface: str = ""
) -> dict[str, Any]:
    listener = call.cluster.consoles.listen(
        call.contacted, vm.vmid, password, call.who.authid, interface
    )
    if listener is None:
        raise PveError("unable to find free port (5900-6000)")
    listener.upid = call.start(kind, vm.vmid, _waiting(call, listener, text))
    path = _path(vm.vmid)
    return {
        "port": str(listener.port),
        "ticket": call.cluster.access.console_ticket(call.who.authid, path, listener.port),
        "upid": listener.upid,
        "user": call.who.authid,
    }


def _waiting(call: Call, listener: Listener, text: str) -> Callable[[Job], Work]:
    def body(job: Job) -> Work:
        job.log(f"{text} {job.task.upid}")
        try:
            # Visitors are real programs, so this is real time.
            yield Sleep(VISITOR_SECONDS * max(1.0, call.cluster.engine.clock.speed))
            if not listener.visited:
                raise PveError("connection timed out")
            yield Sleep(_SESSION_SECONDS)
        except _Left:
            return
        finally:
            call.cluster.consoles.close(listener)

    return body


def websocket(call: Call) -> Upgrade:
    """`vncwebsocket`: connect a client to the port, only on the node that opened it."""
    port, vmid = int(call.params["port"]), call.vmid
    call.cluster.access.check_console_ticket(
        call.get("vncticket"), call.who.authid, _path(vmid), port
    )
    if "sec-websocket-key" not in call.headers:
        raise PveError("unable to get websocket key", 400)
    listener = call.cluster.consoles.visit(call.contacted, port)
    if listener is None or listener.vmid != vmid:
        raise PveError(f"connect to 'localhost:{port}' failed: Connection refused")
    return Upgrade(lambda visitor: _session(call, listener, visitor))


def _session(call: Call, listener: Listener, visitor: WebSocket) -> None:
    cluster, vmid = call.cluster, listener.vmid
    error: PveError = _Left()
    with cluster.turn():
        vm = cluster.vms.get(vmid)
        runs = vm is not None and vm.running
        name = vm.config.get("name", f"VM {vmid}") if vm is not None else ""
        has_line = vm is not None and listener.interface in vm.config
        cluster.consoles.enter(vmid, visitor)
    try:
        if not runs:
            error = PveError(f"VM {vmid} not running")
        elif listener.password:
            screen.serve(visitor, listener.password, name)
        elif _greeted(call, listener, visitor):
            if has_line:
                serial_line.serve(visitor, listener.interface, name)
            else:
                serial_line.refuse(visitor, listener.interface)
    finally:
        with cluster.turn():
            cluster.consoles.leave(vmid, visitor)
            process = cluster.tasks.running.get(listener.upid)
            if process is not None:
                cluster.engine.throw(process, error)


def _greeted(call: Call, listener: Listener, visitor: WebSocket) -> bool:
    """Return whether a terminal's visitor said who it is: `USER:TICKET`; it is answered `OK`."""
    user, _colon, ticket = visitor.line().decode("latin-1").partition(":")
    if not hmac.compare_digest(user.encode("latin-1"), listener.authid.encode()):
        return False
    try:
        access = call.cluster.access
        access.check_console_ticket(ticket, user, _path(listener.vmid), listener.port)
    except PveError:
        return False
    visitor.send(b"OK")
    return True


def _path(vmid: int) -> str:
    return f"/vms/{vmid}"


def monitor(call: Call) -> str:
    """`monitor`: the VM's state, and the commands that end a migration."""
    vm, command = call.vm(), call.get("command")
    if command == "info migrate":
        found = call.cluster.migrations.get(vm.vmid)
        if found is None:
            return ""
        return (
            f"Status: \t\tactive\r\ntransferred ram: {found.transferred >> 10} kbytes\r\n"
            f"total ram: {found.total >> 10} kbytes\r\n"
        )
    if command in ("migrate_cancel", "stop"):
        call.cluster.access.require(call.who, "/", "Sys.Modify")
        running = call.cluster.migrations.get(vm.vmid)
        if running is not None:
            running.cancelled |= command == "migrate_cancel"
            running.stopped |= command == "stop"
        return ""
    if command != "info status":
        raise PveError(
            f"command '{command}' non-existent or not assigned a required permission yet, "
            "limiting to root user"
        )
    if not vm.running:
        raise PveError(f"VM {vm.vmid} not running")
    return f"VM status: {vm.qmp}\r\n"
