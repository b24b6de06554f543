"""Each topic's protocol, its endpoint and its client say the same."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from common import signatures
from common.events import ConductorEvents, HostEvents, WorkerEvents
from compute import manager as compute_manager
from compute.client import ComputeClient
from compute.rpc_api import WorkerRpc
from conductor.endpoints.events import EventEndpoint
from scheduler import manager as scheduler_manager
from scheduler.client import SchedulerClient
from scheduler.rpc_api import SchedulerRpc

#: of a client: the worker that it sends to is named beside the message
ADDRESS = {"self", "ctxt", "worker"}
#: sent by a worker to itself
OWN = {"tick"}
#: kept by the client, not sent
KEPT = {"heard"}


def methods(surface: type) -> dict[str, Any]:
    """Its public methods."""
    return {
        name: found
        for name, found in vars(surface).items()
        if inspect.isfunction(found) and not name.startswith("_")
    }


def parameters(method: Any, but: set[str]) -> list[str]:
    return sorted(set(inspect.signature(method).parameters) - but)


@pytest.mark.parametrize(
    ("surface", "endpoint"),
    [
        (WorkerRpc, compute_manager.Manager),
        (WorkerEvents, compute_manager.EventEndpoint),
        (SchedulerRpc, scheduler_manager.SchedulerManager),
        (HostEvents, scheduler_manager.HostFactsManager),
        (ConductorEvents, EventEndpoint),
    ],
)
def test_an_endpoint_answers_just_what_its_protocol_names(surface: type, endpoint: type) -> None:
    assert methods(endpoint).keys() == methods(surface).keys()
    for name, method in methods(surface).items():
        implemented = getattr(endpoint, name)
        assert inspect.signature(implemented) == inspect.signature(method), name
        assert signatures.messages(implemented) == signatures.messages(method), name


@pytest.mark.parametrize(
    ("surfaces", "client"),
    [((WorkerRpc, WorkerEvents), ComputeClient), ((SchedulerRpc, HostEvents), SchedulerClient)],
)
def test_a_client_sends_just_what_its_protocols_name(
    surfaces: tuple[type, ...], client: type
) -> None:
    table = {name: found for one in surfaces for name, found in methods(one).items()}
    # What other services publish to the same listeners is theirs to send.
    sent = {name: found for name, found in table.items() if name not in OWN | {"update_hosts"}}
    assert methods(client).keys() - KEPT == sent.keys()
    for name, method in sent.items():
        offered = getattr(client, name)
        assert parameters(offered, ADDRESS) == parameters(method, ADDRESS), name
        assert signatures.messages(offered) == signatures.messages(method), name
