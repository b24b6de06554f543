"""All volumes and ports that belong to places of a group: see ``Belongings`` for one kind."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from common.context import RequestContext
from common.resources.groups import Keep
from conductor.cloud import Cloud
from conductor.rpc.servers.servers import CreateServers
from conductor.servers.groups.belongings import Belongings
from conductor.servers.groups.place_ports import PlacePorts
from conductor.servers.groups.place_volumes import PlaceVolumes
from conductor.store.groups.groups import Member
from conductor.store.networks.pools import Within
from conductor.store.transactions import Transaction

_KINDS: Mapping[Keep, type[Belongings]] = {kind.keep: kind for kind in (PlaceVolumes, PlacePorts)}


class NextServer:
    """The create of a place's next server, with what belongs to the place."""

    def __init__(
        self,
        connection: Transaction,
        cloud: Cloud,
        ctxt: RequestContext,
        member: Member,
        within: Within,
        keep: Collection[Keep],
    ) -> None:
        """``keep``: which kinds belong to places now."""
        which = (connection, cloud, ctxt, member, within)
        self._kinds = [kind(*which) for name, kind in _KINDS.items() if name in keep]

    def request(self, asked: CreateServers) -> CreateServers:
        """Return the request with the place's volumes and ports in it."""
        for kind in self._kinds:
            asked = kind.request(asked)
        return asked

    def recorded(self, server_uuid: str) -> Mapping[str, list[str]]:
        """Return the columns of the member once the server is written."""
        return {kind.keep.value: kind.recorded(server_uuid) for kind in self._kinds}


def delete(
    connection: Transaction, cloud: Cloud, ctxt: RequestContext, members: Iterable[Member]
) -> None:
    """Begin to delete what belongs to places that are given up."""
    for member in members:
        for name in member.kept:
            _KINDS[name](connection, cloud, ctxt, member).delete()
