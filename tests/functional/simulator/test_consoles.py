"""Consoles of the simulated Proxmox VE: one endpoint, one visitor, a ticket for one port."""

from __future__ import annotations

import ssl
import struct
from typing import Any
from urllib.parse import urlencode

import pytest

pytest.importorskip("websockets")

from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from common.streams import Exactly, WebSocketStream
from compute.hypervisor.proxmox.console import terminal, vnc
from tests.functional.simulator.conftest import Lab, refusal


@pytest.fixture
def running(lab: Lab) -> Lab:
    """VM 100 runs, with a serial port."""
    assert lab.create(100, serial0="socket") == "OK"
    assert lab.done(lab.api.nodes("pve1").qemu(100).status.start.post()) == "OK"
    return lab


def visit(lab: Lab, opened: dict[str, Any], vmid: int = 100, url: str = "") -> Exactly:
    """Connect to a console's port."""
    simulator = lab.simulator
    address = (url or simulator.endpoints[0]["url"]).replace("https", "wss")
    query = urlencode({"port": opened["port"], "vncticket": opened["ticket"]})
    token = f"PVEAPIToken={simulator.token['tokenid']}={simulator.token['secret']}"
    connection = connect(
        f"{address}/api2/json/nodes/pve1/qemu/{vmid}/vncwebsocket?{query}",
        ssl=ssl.create_default_context(cafile=str(simulator.options.state_dir / "ca.pem")),
        additional_headers={"Authorization": token},
        subprotocols=["binary"],
        compression=None,
        legacy=True,
        max_size=None,
        proxy=None,
    )
    return Exactly(WebSocketStream(connection))


def refused(lab: Lab, opened: dict[str, Any], **more: Any) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as caught:
        visit(lab, opened, **more)
    return caught.value.response.status_code, caught.value.response.reason_phrase


def test_a_screen_behind_a_password(running: Lab) -> None:
    opened = running.api.nodes("pve1").qemu(100).vncproxy.post(websocket=1)
    assert set(opened) == {"cert", "password", "port", "ticket", "upid", "user"}
    screen = vnc.authenticate(visit(running, opened), opened["password"])
    screen.send(b"\1")
    assert (screen.receive() or b"")[:4] == b"\x02\x80\x01\x90"
    screen.close()
    assert running.done(opened["upid"]) == "OK"


def test_a_wrong_password(running: Lab) -> None:
    opened = running.api.nodes("pve1").qemu(100).vncproxy.post(websocket=1)
    with pytest.raises(vnc.VncRefusedError, match="Authentication failed"):
        vnc.authenticate(visit(running, opened), "wrong")


def test_a_serial_line(running: Lab) -> None:
    opened = running.api.nodes("pve1").qemu(100).termproxy.post(serial="serial0")
    line = terminal.enter(visit(running, opened), opened["user"], opened["ticket"])
    shown = b""
    while not shown.endswith(b"login: "):
        shown += line.receive() or b"!"
    line.send(b"root\r")
    assert Exactly(line).exactly(6) == b"root\r\n"
    line.close()


def test_without_a_serial_port(lab: Lab) -> None:
    lab.create(101)
    assert lab.done(lab.api.nodes("pve1").qemu(101).status.start.post()) == "OK"
    with_none = lab.api.nodes("pve1").qemu(101).termproxy
    assert refusal(with_none.post)[0] == 500
    # a port that is named is looked for once its visitor is there
    opened = with_none.post(serial="serial0")
    line = terminal.enter(visit(lab, opened, vmid=101), opened["user"], opened["ticket"])
    assert line.receive() == b"serial interface 'serial0' is not configured\r\n"
    assert line.receive() is None


def test_keys_by_their_places(running: Lab) -> None:
    opened = running.api.nodes("pve1").qemu(100).vncproxy.post(websocket=1)
    screen = Exactly(vnc.authenticate(visit(running, opened), opened["password"]))
    screen.send(b"\1")
    size = screen.exactly(24)[20:]
    screen.exactly(int.from_bytes(size, "big"))
    screen.send(struct.pack(">BxHii", 2, 2, 0, -258))
    assert screen.exactly(16) == struct.pack(">BxHHHHHi", 0, 1, 0, 0, 640, 400, -258)
    first, second = (
        _first_pixel(screen, key) for key in (b"", b"\xff\0\0\1" + bytes(7) + b"\x1e")
    )
    assert first != second
    screen.close()


def _first_pixel(screen: Exactly, key: bytes) -> bytes:
    """Press a key, ask for the picture and return its first pixel."""
    screen.send(key + struct.pack(">BBHHHH", 3, 0, 0, 0, 640, 400))
    return screen.exactly(16 + 640 * 400 * 4)[16:20]


def test_a_ticket_is_for_one_vm_and_port(running: Lab) -> None:
    running.create(101)
    opened = running.api.nodes("pve1").qemu(100).vncproxy.post(websocket=1)
    invalid = (401, "permission denied - invalid PVEVNC ticket")
    assert refused(running, opened, vmid=101) == invalid
    assert refused(running, {**opened, "port": "5999"}) == invalid
    assert refused(running, {**opened, "ticket": "PVEVNC:0::x"}) == invalid
    assert refused(running, {**opened, "port": "80"})[0] == 400


def test_the_port_is_on_the_endpoint_that_was_asked(running: Lab) -> None:
    opened = running.api.nodes("pve1").qemu(100).vncproxy.post(websocket=1)
    other = running.simulator.endpoints[0]["node_urls"]["pve2"]
    assert refused(running, opened, url=other)[0] == 500
    visit(running, opened).close()
    assert refused(running, opened)[0] == 500


def test_a_port_without_a_visitor_closes(running: Lab) -> None:
    running.simulator.engine.set_speed(1)
    opened = running.api.nodes("pve1").qemu(100).vncproxy.post(websocket=1)
    running.simulator.engine.set_speed(5000)
    assert running.done(opened["upid"]) == "connection timed out"
    assert refused(running, opened)[0] == 500


def test_a_stop_ends_a_visit(running: Lab) -> None:
    vm = running.api.nodes("pve1").qemu(100)
    opened = vm.vncproxy.post(websocket=1)
    screen = vnc.authenticate(visit(running, opened), opened["password"])
    assert running.done(vm.status.stop.post()) == "OK"
    assert screen.receive() is None
    stopped = vm.vncproxy.post(websocket=1)
    assert visit(running, stopped).receive() is None
    assert running.done(stopped["upid"]) == "VM 100 not running"
