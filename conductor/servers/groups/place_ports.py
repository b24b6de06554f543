"""Ports that belong to a place of a group: with their addresses and security groups.

They are made in the transaction that writes the place's first server. Like ports that a user
makes, they are not deleted with a server.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from common.errors import Conflict, QuotaExceeded
from common.log import logger
from common.resources import quotas as limits
from common.resources.groups import Keep
from common.resources.security_rules import DEFAULT
from conductor.engine.access import scope
from conductor.plans import Interface
from conductor.rpc.networks.ports import FixedIp, NewPort
from conductor.rpc.servers.servers import CreateServers, RequestedNetwork
from conductor.servers.auto_network import AutoNetwork
from conductor.servers.create.begin_create import requested_networks
from conductor.servers.groups.belongings import Belongings, paired
from conductor.store.networks import user_ports
from conductor.store.networks.filtering import security_groups
from conductor.store.quotas import network_quotas

LOG = logger(__name__)


class PlacePorts(Belongings):
    """See ``Belongings``. A port is given to an interface of its network alone."""

    keep = Keep.PORTS
    _given: Sequence[str] = ()

    def request(self, asked: CreateServers) -> CreateServers:
        auto = AutoNetwork(self.cloud)
        asked = self._named(asked, auto)
        mine = [index for index, one in enumerate(asked.networks) if one.port_id is None]

        def fits(wanted: int, one: int) -> bool:
            row = self.there.get(self.had[one])
            network_id = asked.networks[mine[wanted]].network_id
            return row is not None and row.network_id == network_id

        ports = dict(zip(mine, paired(len(mine), self.had, fits), strict=True))
        asked = _with_ports(asked, {index: one for index, one in ports.items() if one})
        # Interfaces without a port yet are checked like those of any server; ports follow.
        checked = requested_networks(self.connection, self.ctxt, asked, auto)
        lacking = [index for index in mine if ports[index] is None]
        numbers = [mine.index(index) + 1 for index in lacking]
        made = self._create(asked, [checked[index] for index in lacking], numbers)
        new = dict(zip(lacking, made, strict=True))
        self._given = [new.get(index) or str(ports[index]) for index in mine]
        return _with_ports(asked, new)

    def _named(self, asked: CreateServers, auto: AutoNetwork) -> CreateServers:
        """Return the request with the project's automatic network, if it asks for that one."""
        if not asked.auto_network:
            return asked
        network = auto.of_server(self.connection, self.ctxt, needed=asked.needs_network, make=True)
        named = () if network is None else (RequestedNetwork(network.id),)
        return dataclasses.replace(asked, networks=named, auto_network=False)

    def _create(
        self, asked: CreateServers, wanted: Sequence[Interface], numbers: Sequence[int]
    ) -> list[str]:
        if not wanted:
            return []
        owner, cloud = self.member.project_id, self.cloud
        try:
            of_networks = limits.of_networks(cloud.conf)
            network_quotas.take(self.connection, "port", [owner] * len(wanted), of_networks)
        except Conflict as error:
            # A group waits for quota; another refusal would count as a failed creation.
            raise QuotaExceeded(error.message, resource="port") from error
        groups = self._groups(asked)
        new = [
            NewPort(
                owner,
                one.id,
                name=self.name(number),
                fixed_ips=None if one.fixed_ip is None else (FixedIp(ip_address=one.fixed_ip),),
                any_address=asked.any_address,
                security_groups=groups if one.port_security else None,
            )
            for one, number in zip(wanted, numbers, strict=True)
        ]
        prefix, why_not = cloud.conf.networks.mac_prefix, cloud.filtering.why_not(self.connection)
        which = (self.connection, new, prefix, scope(self.ctxt), why_not, self.within)
        return user_ports.create(*which)

    def _groups(self, asked: CreateServers) -> tuple[str, ...] | None:
        """Return the IDs of the security groups that servers get; None: the default one."""
        return (
            tuple(
                security_groups.default(self.connection, self.member.project_id)
                if one == DEFAULT
                else one
                for one in asked.security_groups
            )
            or None
        )

    def _of(self, server_uuid: str) -> Sequence[str]:
        return self._given

    def _locked(self) -> Iterable[Any]:
        return user_ports.locked_of(self.connection, self.had, self.member.project_id)

    def _delete(self, row: Any) -> None:
        if row.server_uuid:
            LOG.info("Port %s of %s is left to its server.", row.id, self.member.name)
            return
        user_ports.delete(self.connection, row.id)


def _with_ports(asked: CreateServers, ports: dict[int, str]) -> CreateServers:
    """Return a request with these ports in some of its positions."""
    networks = [
        dataclasses.replace(one, port_id=ports.get(index, one.port_id))
        for index, one in enumerate(asked.networks)
    ]
    return dataclasses.replace(asked, networks=tuple(networks))
