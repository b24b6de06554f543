"""Accepts unshelvings: what is known to be impossible is refused at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.context import RequestContext
from common.errors import Conflict
from common.resources.states import PowerState
from conductor.plans import ResizePlan
from conductor.servers.accept import Accept
from conductor.servers.move import destination
from conductor.store.hosts import registry
from conductor.store.records import Operation, Server
from conductor.store.transactions import Transaction

_PIN = "pinned_availability_zone"


def accept(
    acceptance: Accept, ctxt: RequestContext, server_uuid: str, asked: Mapping[str, Any]
) -> Operation | None:
    """Begin one; ``asked``: the ``host`` and the zone to pin the server to, None: to none.

    Raises Conflict where it is to leave its host and can't, and what ``Accept.act`` raises.
    """
    host = asked.get("host")
    pin = {_PIN: asked[_PIN]} if _PIN in asked else {}

    def plan(connection: Transaction, server: Server) -> ResizePlan:
        _check(connection, server, host, pin.get(_PIN, server.pinned_availability_zone))
        return ResizePlan(asked_host=host)

    return acceptance.act(ctxt, server_uuid, "unshelve", pin, plan)


def fixed(connection: Transaction, server: Server) -> str | None:
    """Return why a parked server's VM can't be moved, or None: nothing is known."""
    if server.power_state == PowerState.SUSPENDED:
        return "its memory is saved on its node"
    return destination.immovable(connection, server)


def _check(connection: Transaction, server: Server, host: str | None, zone: str | None) -> None:
    """Raise Conflict, HostNotFound."""
    here, _ = registry.host(connection, str(server.host))
    if host not in (None, here.host):
        there, _ = registry.host(connection, str(host))
        if there.cluster != here.cluster:
            raise Conflict(
                f"Server {server.uuid} can't be unshelved on host {host}: its disk is in cluster "
                f"{here.cluster}, the host in {there.cluster}."
            )
    elif zone in (None, here.availability_zone):
        return
    why = fixed(connection, server)
    if why is not None:
        raise Conflict(
            f"Server {server.uuid} is unshelved where its disk is, on host {here.host} in "
            f"availability zone {here.availability_zone}: it can't be moved, {why}."
        )
    why = destination.out_of_reach(connection, server, host)
    if why is not None:
        raise Conflict(f"Server {server.uuid} can't be unshelved there: {why}.")
