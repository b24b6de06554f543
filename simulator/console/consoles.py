"""Ports that wait for a visitor of a VM's console, and the visitors of each VM."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from simulator.console.websocket import WebSocket

FIRST_PORT, PORTS = 5900, 100


@dataclass(eq=False)
class Listener:
    """A port of one node that waits for one visitor."""

    node: str
    """Where the port is: the node that was asked, wherever the VM is."""
    port: int
    vmid: int
    password: str
    """Of VNC; empty for a terminal."""
    authid: str
    interface: str = ""
    """Of a terminal: a serial port."""
    upid: str = ""
    visited: bool = False


class Consoles:
    """The consoles of one cluster. Needs its mutex."""

    def __init__(self) -> None:
        self._listeners: dict[tuple[str, int], Listener] = {}
        self._visitors: defaultdict[int, set[WebSocket]] = defaultdict(set)

    def listen(
        self, node: str, vmid: int, password: str, authid: str, interface: str
    ) -> Listener | None:
        """Open a port of a node; None while all are taken."""
        for port in range(FIRST_PORT, FIRST_PORT + PORTS):
            if (node, port) not in self._listeners:
                made = Listener(node, port, vmid, password, authid, interface)
                self._listeners[node, port] = made
                return made
        return None

    def visit(self, node: str, port: int) -> Listener | None:
        """Return who listens on a port of a node, for the first visitor only."""
        found = self._listeners.get((node, port))
        if found is None or found.visited:
            return None
        found.visited = True
        return found

    def close(self, listener: Listener) -> None:
        """Close a port."""
        self._listeners.pop((listener.node, listener.port), None)

    def enter(self, vmid: int, visitor: WebSocket) -> None:
        """Add a visitor, who is cut off when the VM ends."""
        self._visitors[vmid].add(visitor)

    def leave(self, vmid: int, visitor: WebSocket) -> None:
        """Remove a visitor."""
        self._visitors[vmid].discard(visitor)
        if not self._visitors[vmid]:
            del self._visitors[vmid]

    def cut(self, vmid: int) -> None:
        """Cut all visitors of a VM that has ended."""
        for visitor in self._visitors.get(vmid, ()):
            visitor.cut()
