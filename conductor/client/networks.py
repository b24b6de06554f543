"""Calls about networks and subnets of projects."""

from __future__ import annotations

from typing import Any

from common.context import RequestContext
from conductor.client.base import Base
from conductor.messages import NewNetwork, NewShare, NewSubnet
from conductor.rpc_api import NetworkRpc


class NetworkCalls(Base):
    """See ``conductor.rpc_api.NetworkRpc``. ``type`` in the details of errors is Neutron's."""

    def create_networks(self, ctxt: RequestContext, networks: list[NewNetwork]) -> list[str]:
        """Make all of these networks or none; return their ids.

        Raises Invalid (no such bridge or tag), Conflict (in use, none left, over quota).
        """
        return self._rpc.call(ctxt, NetworkRpc.create_networks, networks=networks)

    def update_network(self, ctxt: RequestContext, network_id: str, asked: dict[str, Any]) -> None:
        """Change name, description, mtu, shared or external of a network.

        Raises NetworkNotFound, Conflict (a cluster says what it is, others use it), Invalid.
        """
        self._rpc.call(ctxt, NetworkRpc.update_network, network_id=network_id, asked=asked)

    def delete_network(self, ctxt: RequestContext, network_id: str) -> None:
        """Delete a network with its subnets. Raises NetworkNotFound, Conflict (it has ports)."""
        self._rpc.call(ctxt, NetworkRpc.delete_network, network_id=network_id)

    def create_subnets(self, ctxt: RequestContext, subnets: list[NewSubnet]) -> list[str]:
        """Make all of these subnets or none; return their ids.

        Raises NetworkNotFound, Invalid, Conflict.
        """
        return self._rpc.call(ctxt, NetworkRpc.create_subnets, subnets=subnets)

    def update_subnet(self, ctxt: RequestContext, subnet_id: str, asked: dict[str, Any]) -> None:
        """Change a subnet's attributes. Raises SubnetNotFound, Invalid, Conflict."""
        self._rpc.call(ctxt, NetworkRpc.update_subnet, subnet_id=subnet_id, asked=asked)

    def delete_subnet(self, ctxt: RequestContext, subnet_id: str) -> None:
        """Delete a subnet. Raises SubnetNotFound, Conflict (a port has an address of it)."""
        self._rpc.call(ctxt, NetworkRpc.delete_subnet, subnet_id=subnet_id)

    def create_network_shares(self, ctxt: RequestContext, shares: list[NewShare]) -> list[str]:
        """Have projects use networks, all of these or none; return the shares' ids.

        Raises NetworkNotFound, Conflict (there is one, over quota).
        """
        return self._rpc.call(ctxt, NetworkRpc.create_network_shares, shares=shares)

    def update_network_share(self, ctxt: RequestContext, share_id: str, target: str) -> None:
        """Have another project use a network instead. Raises NotFound, Conflict (see below)."""
        self._rpc.call(ctxt, NetworkRpc.update_network_share, share_id=share_id, target=target)

    def delete_network_share(self, ctxt: RequestContext, share_id: str) -> None:
        """Delete a share. Raises NotFound, Conflict (who would lose access has ports there)."""
        self._rpc.call(ctxt, NetworkRpc.delete_network_share, share_id=share_id)

    def auto_network(self, ctxt: RequestContext, project_id: str, *, dry_run: bool) -> str:
        """Return the id of the network of a project's servers whose users name none.

        It is made if need be; with ``dry_run`` the id is empty then. Raises Conflict.
        """
        return self._rpc.call(
            ctxt, NetworkRpc.auto_network, project_id=project_id, dry_run=dry_run
        )

    def delete_auto_network(self, ctxt: RequestContext, project_id: str) -> None:
        """Delete the network that was made so, if there is one. Raises Conflict (it has ports)."""
        self._rpc.call(ctxt, NetworkRpc.delete_auto_network, project_id=project_id)
