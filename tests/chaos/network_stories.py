"""Stories of networks on SDN vnets: each is made in its cluster and applied, or is not there."""

from __future__ import annotations

from typing import Any

from common.resources import vnets
from conductor.rpc.networks.networks import NewNetwork
from db import schema
from tests.chaos.dressing import CLOUD
from tests.chaos.story import Story


class MakeNetwork(Story):
    """A network of a project gets a vnet."""

    good = "ACTIVE"

    def prepare(self) -> None:
        """See ``Story``: it begins with nothing."""

    def act(self) -> None:
        """See ``Story``."""
        new, context = [NewNetwork("project", self.name)], self.stage.context()
        self.asked("create_networks", lambda: self.stage.client.create_networks(context, new))

    def state(self) -> str:
        """See ``Story``."""
        row = self._row()
        status = "none" if row is None else str(row.status)
        return "" if status == "BUILD" else status

    def wrong(self) -> str:
        """See ``Story``: what is configured runs, and is what the record says."""
        row = self._row()
        wanted = {}
        if row is not None and row.status == "ACTIVE":
            wanted[row.bridge] = (str(row.vni), (row.id, CLOUD), "project")
        sdn = self.stage.simulator.cluster().sdn
        with self.stage.simulator.cluster().turn():
            there = {name: _whose(one.options) for name, one in sdn.running_vnets.items()}
            pending = bool(sdn.pending)
        found = [] if there == wanted else [f"vnets {there} instead of {wanted}"]
        if pending:
            found.append("changes of the SDN configuration wait")
        return "; ".join(found)

    def remove(self) -> str:
        """See ``Story``."""
        row = self._row()
        if row is not None:
            client, context = self.stage.client, self.stage.context()
            self.until_gone(
                lambda: self._row() is None, lambda: client.delete_network(context, row.id)
            )
        self.stage.helped(lambda: not self.stage.rows(schema.vnets.select()))
        return self.wrong()

    def _row(self) -> Any:
        query = schema.networks.select().where(schema.networks.c.name == self.name)
        return next(iter(self.stage.rows(query)), None)


class DeleteNetwork(MakeNetwork):
    """A network on a vnet is deleted."""

    good = "none"

    def prepare(self) -> None:
        """See ``Story``."""
        super().act()
        self.stage.until(lambda: self.state() == "ACTIVE" and not self.stage.open_operations())

    def act(self) -> None:
        """See ``Story``."""
        row, context = self._row(), self.stage.context()
        self.asked("delete_network", lambda: self.stage.client.delete_network(context, row.id))


def _whose(options: dict[str, str]) -> tuple[str, tuple[str, str] | None, str]:
    alias = options["alias"]
    return options["tag"], vnets.owner(alias), vnets.project(alias)
