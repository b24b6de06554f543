"""Vnets of networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.messages.commands import (
    MakeVnet,
)
from common.resources.states import InternalAction
from conductor.endpoints.networks.networks import NetworkEndpoint
from conductor.rpc.networks.networks import NewNetwork
from conductor.store.records import Operation
from tests.functional.conductor.takeover.begin import (
    Story,
    operation_on,
    refused,
)
from tests.functional.conductor.takeover.cloud import Cloud
from tests.functional.conductor.takeover.deaths import Takeover


def _make_vnet(cloud: Cloud) -> Operation:
    """The cluster gets the vnet of a network."""
    conductor = cloud.world.conductor.cloud
    conductor.conf.set_override("tenant_vnets", ["*:tenants:5000-5009"], "networks")
    endpoint = NetworkEndpoint(conductor)
    [network_id] = endpoint.create_networks(cloud.world.ctxt, [NewNetwork("p")])
    return operation_on(cloud, network_id, InternalAction.MAKE_VNET)


def _overtaken_vnet(cloud: Cloud) -> Operation:
    operation = _make_vnet(cloud)
    endpoint = NetworkEndpoint(cloud.world.conductor.cloud)
    endpoint.delete_network(cloud.world.ctxt, operation.resource_id)
    return operation


def _remove_vnet(cloud: Cloud) -> Operation:
    operation = _make_vnet(cloud)
    cloud.work_off(cloud.heir, operation)
    endpoint = NetworkEndpoint(cloud.world.conductor.cloud)
    endpoint.delete_network(cloud.world.ctxt, operation.resource_id)
    return operation_on(cloud, operation.resource_id, InternalAction.REMOVE_VNET)


STORIES: Mapping[tuple[str, str], Story] = {
    (InternalAction.MAKE_VNET, "well"): _make_vnet,
    (InternalAction.MAKE_VNET, "in vain"): lambda cloud: refused(cloud, MakeVnet, _make_vnet),
    (InternalAction.MAKE_VNET, "overtaken by a delete"): _overtaken_vnet,
    (InternalAction.REMOVE_VNET, "well"): _remove_vnet,
}


class TestNetworks(Takeover):
    stories = STORIES

    def expect(self, cloud: Cloud, action: str, how: str, ends: Mapping[str, Any]) -> None:
        if action == InternalAction.REMOVE_VNET:
            assert ends["vnets"] == []
            return
        made = {"well": ([("ACTIVE", 5000)], [("active", 5000)])}
        made["in vain"] = ([("ERROR", 5000)], [("error", 5000)])
        mine = [one for one in ends["networks"] if one[1]]
        assert (mine, ends["vnets"]) == made.get(how, ([], []))
