"""Open a console of a VM that is ours: ask for a port, and connect to it on the same endpoint."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from common.messages.consoles import ConsoleTarget, ConsoleType
from common.messages.reports import Category
from common.streams import LIBRARY_LOG, Stream, WebSocketStream, tls
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api import privileges
from compute.hypervisor.proxmox.cluster import proven
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.console import terminal, vnc
from compute.hypervisor.proxmox.settings import ClusterSettings

SERIAL = "serial0"
#: Proxmox VE waits so long for a visitor of the port
CONNECT_SECONDS = 10.0
CLOSE_SECONDS = 2.0
NEEDED = privileges.CONSOLE


def problem(shared: Shared, target: ConsoleTarget) -> str | None:
    """Return why the VM can have no such console, or None. Raises HypervisorError."""
    config = _config(shared, target)
    if target.type is ConsoleType.SERIAL and SERIAL not in config:
        return "The VM has no serial port; servers that are built now have one."
    if target.type is ConsoleType.NOVNC and _display(config) == "none":
        return "The VM has no display."
    path = f"/vms/{target.vmid}"
    granted = shared.client.get("access/permissions")
    if privileges.lacking(granted, [privileges.Need(path, NEEDED, "consoles")]):
        return f"The agent's token lacks {NEEDED[0]} on {path}."
    return None


def open_console(shared: Shared, target: ConsoleTarget) -> Stream:
    """Return the console's stream. Raises HypervisorError."""
    _config(shared, target)
    path = f"nodes/{target.node}/qemu/{target.vmid}"
    graphical = target.type is ConsoleType.NOVNC
    call, values = (
        ("vncproxy", {"websocket": 1, "generate-password": 1})
        if graphical
        else ("termproxy", {"serial": SERIAL})
    )
    host, port, opened = shared.client.post_there(f"{path}/{call}", **values)
    stream = _connect(shared.settings, host, port, path, opened)
    try:
        if graphical:
            return vnc.authenticate(stream, str(opened.get("password") or opened["ticket"]))
        return terminal.enter(stream, str(opened["user"]), str(opened["ticket"]))
    except (OSError, vnc.VncRefusedError, terminal.TerminalRefusedError) as error:
        stream.close()
        raise HypervisorError(
            Category.NODE_UNHEALTHY,
            f"The console of VM {target.vmid} on {target.node} doesn't answer ({error}); "
            "does the VM run?",
        ) from error


def _config(shared: Shared, target: ConsoleTarget) -> Mapping[str, Any]:
    return proven.config(shared, target.node, target.vmid, target.server_uuid)


def _display(config: Mapping[str, Any]) -> str:
    kind = str(config.get("vga", "std")).split(",", 1)[0]
    return kind.rpartition("=")[2]


def _connect(
    settings: ClusterSettings, host: str, port: int, path: str, opened: Mapping[str, Any]
) -> WebSocketStream:
    # Loaded with the first console only.
    from websockets.exceptions import WebSocketException
    from websockets.sync.client import connect
    from websockets.typing import Subprotocol

    query = urlencode({"port": opened["port"], "vncticket": opened["ticket"]})
    name = f"[{host}]" if ":" in host else host
    token = settings.token
    try:
        connection = connect(
            f"wss://{name}:{port}/api2/json/{path}/vncwebsocket?{query}",
            ssl=_context(settings),
            additional_headers={"Authorization": f"PVEAPIToken={token.id}={token.secret}"},
            subprotocols=[Subprotocol("binary")],
            compression=None,
            legacy=True,
            proxy=None,
            open_timeout=CONNECT_SECONDS,
            close_timeout=CLOSE_SECONDS,
            ping_interval=None,
            max_size=None,
            logger=LIBRARY_LOG,
        )
    except (OSError, WebSocketException) as error:
        # Its text has no part of the request.
        raise HypervisorError(
            Category.NODE_UNHEALTHY,
            f"{host}:{port} opened no console ({type(error).__name__}: {error}).",
        ) from None
    return WebSocketStream(connection)


def _context(settings: ClusterSettings) -> ssl.SSLContext:
    trusted = settings.verify
    return tls(trusted if isinstance(trusted, str) else None, verified=trusted is not False)
