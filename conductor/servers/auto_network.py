"""Chooses the network of a project's server whose user names none, and makes it."""

from __future__ import annotations

import ipaddress

from common.context import RequestContext
from common.errors import ConfigurationError, Conflict, Invalid
from common.resources import networks as choice
from common.resources import quotas, vnets
from conductor.cloud import Cloud
from conductor.networks import make_vnet
from conductor.store.networks import auto_networks, networks, segments
from conductor.store.networks.networks import Network
from conductor.store.networks.pools import Within
from conductor.store.transactions import Transaction


class AutoNetwork:
    """Knows the options. Raises Invalid, ConfigurationError for those that can't be."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._conf = conf = cloud.conf
        self.ranges = tuple(map(segments.parse, conf.networks.tenant_vlans))
        self.vnis = vnets.parse_all(conf.networks.tenant_vnets)
        self._cidr = _cidr(conf.networks.auto_cidr)

    def existing(self, connection: Transaction, project_id: str) -> Network | None:
        """Return the network that there is, None if it would have to be made.

        Raises Conflict where several could be meant.
        """
        known = networks.unnamed(connection, project_id)
        return choice.chosen(known, self._conf.networks.auto)

    def make(
        self,
        connection: Transaction,
        ctxt: RequestContext,
        project_id: str,
        within: Within | None = None,
    ) -> str:
        """Return the id of the project's own, which is made if need be. Raises Conflict, and
        Unsettled until the VMs of ``within`` are known; None: those of all clusters that
        answer."""
        found = auto_networks.locked(connection, project_id)
        if found is not None:
            return found
        limits = quotas.of_networks(self._conf)
        segments = (self.ranges, self.vnis)
        within = within or self._cloud.within()
        made = auto_networks.make(connection, project_id, segments, self._cidr, limits, within)
        make_vnet.begin_all(connection, self._cloud, ctxt, [made])
        return made

    def of_server(
        self, connection: Transaction, ctxt: RequestContext, *, needed: bool, make: bool
    ) -> Network | None:
        """Return the network of a new server; None: it gets none.

        If the project has no network and ``needed`` or ``[networks] auto`` asks for one, it is
        made. Without ``make`` nothing is written: the network returned for a bridge has an empty
        ID; for a vnet, whose bridge doesn't exist yet, None. Raises Conflict where several
        networks match, Invalid where none can be made.
        """
        project_id = str(ctxt.project_id)
        found = self.existing(connection, project_id)
        auto = self._conf.networks.auto
        if found is not None or not (needed or auto):
            return found
        if not (self.ranges or self.vnis):
            why = f"this cloud has {f'no bridge {auto}' if auto else 'none'}."
            raise Invalid(f"Unable to automatically allocate a network: {why}")
        if not make and not self.ranges:
            return None
        if not make:
            return Network("", auto_networks.NETWORK, self.ranges[0].bridge, None, 1500)
        try:
            made = self.make(connection, ctxt, project_id)
        except (Conflict, Invalid) as error:
            raise Invalid(
                f"Unable to automatically allocate a network for project {project_id}: "
                f"{error.message}"
            ) from error
        return networks.named(connection, [made])[made]

    def topology(
        self,
        connection: Transaction,
        ctxt: RequestContext,
        project_id: str,
        within: Within,
        *,
        dry_run: bool,
    ) -> str:
        """Return the id of the network of those who name none; it is made if need be.

        ``dry_run``: empty where it would be made. Raises Conflict, and Unsettled.
        """
        made = auto_networks.find(connection, project_id)
        if made is not None:
            return made
        try:
            found = self.existing(connection, project_id)
        except Conflict as error:
            raise auto_networks.failure(
                "there are several networks, and [networks] auto names none"
            ) from error
        if found is not None:
            return found.id
        if not (self.ranges or self.vnis):
            raise auto_networks.failure("there is no network")
        return "" if dry_run else self.make(connection, ctxt, project_id, within)


def _cidr(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text))
    except ValueError as error:
        raise ConfigurationError(f"[networks] auto_cidr: {error}") from error
