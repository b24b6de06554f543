"""One request to the API, as handlers get it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from simulator.console.websocket import WebSocket
from simulator.engine import Work
from simulator.errors import bad_parameters
from simulator.state.access import Identity
from simulator.state.cluster import Cluster
from simulator.state.model import Node, Vm
from simulator.state.tasks import Job


@dataclass(frozen=True)
class Upgrade:
    """A handler's result that is no answer: the connection becomes a websocket."""

    session: Callable[[WebSocket], None]
    """Runs until the visitor leaves (Gone); without the cluster's mutex."""


@dataclass
class Call:
    """One call: caller, cluster and checked parameters, including those in the path."""

    cluster: Cluster
    who: Identity
    method: str
    path: str
    params: dict[str, str]
    contacted: str
    raw: Mapping[str, Any] = field(default_factory=dict)
    upload: IO[bytes] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def node(self) -> str:
        """The node named in the path."""
        return self.params["node"]

    @property
    def vmid(self) -> int:
        """The VM named in the path."""
        return int(self.params["vmid"])

    def get(self, name: str, default: str = "") -> str:
        """Return a parameter, or the default."""
        return self.params.get(name, default)

    def flag(self, name: str) -> bool:
        """Return whether a boolean parameter is set."""
        return self.params.get(name) == "1"

    def vm(self) -> Vm:
        """Return the VM that the path names, on the node that the path names."""
        return self.cluster.vm(self.node, self.vmid)

    def home(self) -> Node:
        """Return the node that the path names."""
        return self.cluster.node(self.node)

    def skiplock(self) -> bool:
        """Return whether to ignore locks, which only the literal root@pam may ask for."""
        if not self.flag("skiplock"):
            return False
        if not self.who.root:
            raise bad_parameters(skiplock="Only root may use this option.")
        return True

    def start(self, kind: str, subject: str | int, body: Callable[[Job], Work]) -> str:
        """Start a task on the node that the path names and return its UPID."""
        upid = self.cluster.tasks.start(self.home(), kind, str(subject), self.who, body)
        self.started.append(upid)
        return upid


Handler = Callable[[Call], Any]
# Handlers by method and path.
Calls = Mapping[str, Handler]


def nothing(_call: Call) -> list[Any]:
    """Return an empty list: what there could be is not simulated."""
    return []
