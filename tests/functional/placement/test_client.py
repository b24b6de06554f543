"""The client that the other services use, over HTTP."""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Callable
from typing import Any

import pytest
from oslo_config import cfg

from common import context
from common.errors import (
    Conflict,
    Forbidden,
    GenerationConflict,
    Invalid,
    NotFound,
    Unavailable,
)
from placement.app import make_app
from placement.client import PlacementClient
from placement.messages import Allocations, Memberships, NewProvider, Replacement, Usage
from placement.operation import Services
from tests.fixtures.auth import header_auth
from tests.functional.placement.builders import a_uuid
from tests.functional.placement.conftest import client_at, served

pytestmark = [pytest.mark.timeout(900), pytest.mark.sampled(2)]
INVENTORY = {"VCPU": {"total": 4}, "MEMORY_MB": {"total": 1024, "reserved": 24}}


@pytest.fixture
def provider(client: PlacementClient) -> str:
    """A provider with INVENTORY."""
    uuid = a_uuid()
    client.ensure_provider(uuid, f"node-{uuid}")
    client.set_inventory(uuid, INVENTORY)
    return uuid


def test_providers_are_made_once(client: PlacementClient) -> None:
    uuid = a_uuid()
    made = client.ensure_provider(uuid, "node")
    assert client.ensure_provider(uuid, "node") == made
    assert client.ensure_provider(uuid, "renamed").name == "renamed"
    assert [one.uuid for one in client.providers("renamed")] == [uuid]
    with pytest.raises(Conflict, match="already exists"):
        client.ensure_provider(a_uuid(), "renamed")
    client.delete_provider(uuid)
    client.delete_provider(uuid)
    assert client.providers() == []


def test_a_provider_is_made_with_all_it_has(client: PlacementClient) -> None:
    uuid = a_uuid()
    client.add_provider(uuid, "node", INVENTORY, ["CUSTOM_NEVER_SEEN", "HW_CPU_X86_VMX"])
    assert not client.set_inventory(uuid, INVENTORY)
    assert client.traits(uuid) == {"CUSTOM_NEVER_SEEN", "HW_CPU_X86_VMX"}
    with pytest.raises(Conflict):
        client.add_provider(a_uuid(), "node", INVENTORY, [])


def test_many_providers_are_made_at_once(
    client: PlacementClient, provider: str, plain_client: PlacementClient
) -> None:
    given = [NewProvider(a_uuid(), f"n{n}", INVENTORY, ["HW_CPU_X86_VMX"]) for n in range(3)]
    there = NewProvider(provider, "other", {}, [])
    assert client.add_providers([*given, there]) == {one.uuid for one in given}
    for one in given:
        assert not client.set_inventory(one.uuid, INVENTORY)
        assert client.traits(one.uuid) == {"HW_CPU_X86_VMX"}
    found = client.candidates({"VCPU": 1}, required=["HW_CPU_X86_VMX"])
    assert set(found.uuids) == {one.uuid for one in given}
    assert client.claim(a_uuid(), given[0].uuid, {"VCPU": 1}, "project", "user").won
    assert client.add_providers([given[0], given[1]._replace(uuid=a_uuid())]) == set()
    with pytest.raises(Invalid, match="No such trait CUSTOM_NEVER"):
        client.add_providers([NewProvider(a_uuid(), "x", INVENTORY, ["CUSTOM_NEVER"])])
    with pytest.raises(Invalid, match="No such resource class CUSTOM_NEVER"):
        client.add_providers([NewProvider(a_uuid(), "x", {"CUSTOM_NEVER": {"total": 1}}, [])])
    assert plain_client.add_providers(given) is None, "OpenStack's placement makes one at a time"


def test_all_allocations_are_listed_in_pages(
    client: PlacementClient,
    provider: str,
    plain_client: PlacementClient,
    conf: cfg.ConfigOpts,
    services: Services,
) -> None:
    assert client.all_allocations() == {}
    servers = [a_uuid() for _ in range(3)]
    for server in servers:
        client.claim(server, provider, {"VCPU": 1, "MEMORY_MB": 10}, "project", "user")
    wanted = {server: {provider: {"VCPU": 1, "MEMORY_MB": 10}} for server in servers}
    for page in (1, 2, 3, 4):
        app = make_app(conf, header_auth, dataclasses.replace(services, page=page))
        with served(app) as address:
            assert client_at(address).all_allocations() == wanted
    assert plain_client.all_allocations() is None, "OpenStack's placement has no such list"


def test_many_consumers_are_released_at_once(
    client: PlacementClient,
    provider: str,
    plain_client: PlacementClient,
    count: Callable[[Callable[[], Any]], list[str]],
) -> None:
    servers = [a_uuid() for _ in range(3)]
    counts = []
    for one in (client, plain_client):
        for server in servers:
            assert client.claim(server, provider, {"VCPU": 1}, "project", "user").won
        one.release_all([servers[0]])
        assert client.provider_usages(provider)["VCPU"] == 2
        # The first has nothing any more, and one never existed.
        counts.append(len(count(lambda one=one: one.release_all([*servers, a_uuid()]))))
        assert client.provider_usages(provider)["VCPU"] == 0
        assert client.allocations_of(servers[2]).by_provider == {}
    together, one_by_one = counts
    assert together < one_by_one
    client.release_all([])


def test_what_is_so_already_is_not_written(client: PlacementClient, provider: str) -> None:
    assert not client.set_inventory(provider, INVENTORY)
    assert client.set_inventory(provider, {**INVENTORY, "DISK_GB": {"total": 9}})
    assert client.set_traits(provider, ["CUSTOM_NEW", "HW_CPU_X86_VMX"])
    assert not client.set_traits(provider, ["HW_CPU_X86_VMX", "CUSTOM_NEW"])
    assert client.add_trait(provider, "CUSTOM_MORE")
    assert client.remove_trait(provider, "CUSTOM_NEW")
    assert not client.remove_trait(provider, "CUSTOM_NEW")
    assert client.traits(provider) == {"CUSTOM_MORE", "HW_CPU_X86_VMX"}
    aggregate = a_uuid()
    assert client.set_aggregates(provider, [aggregate])
    assert not client.set_aggregates(provider, [aggregate])
    with pytest.raises(Invalid, match="No such trait NO_SUCH_TRAIT"):
        client.add_trait(provider, "NO_SUCH_TRAIT")
    with pytest.raises(NotFound):
        client.set_inventory(a_uuid(), INVENTORY)


def test_memberships_of_many_are_read_at_once(
    client: PlacementClient, plain_client: PlacementClient
) -> None:
    one, two = a_uuid(), a_uuid()
    client.add_provider(one, one, INVENTORY, ["HW_CPU_X86_VMX", "CUSTOM_A"])
    client.add_provider(two, two, INVENTORY, [])
    aggregate = a_uuid()
    client.set_aggregates(two, [aggregate])
    assert client.memberships([one, two, a_uuid()]) == {
        one: Memberships(frozenset({"HW_CPU_X86_VMX", "CUSTOM_A"}), frozenset()),
        two: Memberships(frozenset(), frozenset({aggregate})),
    }
    assert plain_client.memberships([one]) is None


def test_candidates(client: PlacementClient, provider: str) -> None:
    aggregate = a_uuid()
    client.set_traits(provider, ["CUSTOM_A"])
    client.set_aggregates(provider, [aggregate])
    found = client.candidates(
        {"VCPU": 1, "MEMORY_MB": 512},
        required=["CUSTOM_A"],
        forbidden=["HW_CPU_X86_VMX"],
        member_of=[aggregate, [aggregate, a_uuid()]],
        in_tree=provider,
        limit=1,
    )
    assert found.uuids == [provider]
    assert found.usages == {"VCPU": Usage([4], [0]), "MEMORY_MB": Usage([1000], [0])}
    assert found.traits == [{"CUSTOM_A"}]
    assert client.candidates({"VCPU": 5}).uuids == []
    with pytest.raises(Invalid, match="No such resource class CUSTOM_NONE"):
        client.candidates({"CUSTOM_NONE": 1})
    client.ensure_resource_class("CUSTOM_NONE")
    assert client.candidates({"CUSTOM_NONE": 1}).uuids == []


def test_candidates_in_columns_are_those_of_the_placement_api(
    client: PlacementClient, plain_client: PlacementClient
) -> None:
    client.ensure_resource_class("CUSTOM_GPU")
    stock = {"VCPU": {"total": 8, "allocation_ratio": 16.0}, "MEMORY_MB": {"total": 1024}}
    more = {"CUSTOM_GPU": {"total": 2, "reserved": 1}}
    for number in range(6):
        own = ["HW_CPU_X86_VMX", f"CUSTOM_ZONE_{number % 2}"] if number else []
        client.add_provider(a_uuid(), f"n{number}", stock | (more if number % 2 else {}), own)
    first = client.candidates({"VCPU": 1}).uuids[0]
    client.claim(a_uuid(), first, {"VCPU": 3, "MEMORY_MB": 100}, "project", "user")
    client.change_traits(first, lambda there: there | {"HW_CPU_X86_AVX"})
    for asked in ({}, {"limit": 2}, {"required": ["HW_CPU_X86_VMX"]}, {"in_tree": first}):
        found = client.candidates({"VCPU": 1}, **asked)
        plain = plain_client.candidates({"VCPU": 1}, **asked)
        assert (found.uuids, found.traits) == (plain.uuids, plain.traits)
        assert found.usages == plain.usages
    assert found.usages["VCPU"] == Usage([128], [3])
    client.set_inventory(first, {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 2**31 - 1}})
    [memory] = client.candidates({"VCPU": 1}, in_tree=first).usages["MEMORY_MB"].capacity
    assert memory == 2**31 - 1
    client.set_inventory(first, {name: {"total": 1, "allocation_ratio": 3e38} for name in stock})
    [memory] = client.candidates({"VCPU": 1}, in_tree=first).usages["MEMORY_MB"].capacity
    assert memory == 2**62


class Disturbing:
    """An adapter to placement that somebody else gets ahead of, so often."""

    def __init__(self, client: PlacementClient, times: int) -> None:
        self._call, self.times = client._call, times

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        if method == "PUT" and self.times:
            self.times -= 1
            raise GenerationConflict("the provider's generation changed")
        return self._call(method, path, body)


def test_generation_conflicts_of_a_claim_are_tried_again_and_counted(
    client: PlacementClient, provider: str
) -> None:
    for times in (0, 1, 4):
        client._call = Disturbing(client, times)
        claimed = client.claim(a_uuid(), provider, {"MEMORY_MB": 100}, "project", "user")
        assert (claimed.won, claimed.conflicts) == (True, times)
    client._call = Disturbing(client, 5)
    with pytest.raises(GenerationConflict) as given_up:
        client.claim(a_uuid(), provider, {"MEMORY_MB": 100}, "project", "user")
    assert given_up.value.details["conflicts"] == 5
    claimed = client.claim(a_uuid(), provider, {"MEMORY_MB": 1000}, "project", "user")
    assert (claimed.won, claimed.conflicts) == (False, 0)


def some_hosts(client: PlacementClient, *vcpus: int) -> list[str]:
    """Make providers with so many VCPUs."""
    uuids = [a_uuid() for _ in vcpus]
    for uuid, count in zip(uuids, vcpus, strict=True):
        client.add_provider(uuid, uuid, {"VCPU": {"total": count}}, [])
    return uuids


def test_the_first_provider_with_room_is_claimed(
    client: PlacementClient, plain_client: PlacementClient
) -> None:
    for one in (client, plain_client):
        small, large, other = some_hosts(client, 1, 4, 4)
        absent = [] if one is plain_client else [a_uuid()]

        def claim(
            consumer: str,
            *providers: str,
            vcpus: int = 2,
            ask: PlacementClient = one,
        ) -> str | None:
            found = ask.claim_first(consumer, providers, {"VCPU": vcpus}, "project", "user")
            return found.provider

        first = a_uuid()
        assert claim(first, *absent, small, large, other) == large
        assert claim(first, small, large, other) == large, "a repeated claim"
        held = client.allocations_of(first)
        assert (held.by_provider, held.project_id, held.user_id) == (
            {large: {"VCPU": 2}},
            "project",
            "user",
        )
        with pytest.raises(GenerationConflict):
            claim(first, other)
        assert claim(a_uuid(), other, large, vcpus=4) == other
        late = a_uuid()
        assert claim(late, small, large, other, vcpus=3) is None
        assert client.allocations_of(late).generation is None
        assert claim(late, small, large, other) == large
        assert [client.provider_usages(uuid)["VCPU"] for uuid in (small, large, other)] == [
            0,
            4,
            4,
        ]
    assert client.claim_first(a_uuid(), [small], {"CUSTOM_X": 1}, "p", "u").provider is None


def test_a_provider_that_is_written_to_by_many_is_left_for_the_next(
    client: PlacementClient, plain_client: PlacementClient
) -> None:
    one, other = some_hosts(client, 4, 4)
    assert (
        plain_client.claim_first(a_uuid(), [one], {"VCPU": 1}, "project", "user").provider == one
    )
    plain_client._call = Disturbing(plain_client, 7)
    found = plain_client.claim_first(a_uuid(), [one, other], {"VCPU": 1}, "project", "user")
    assert (found.provider, found.conflicts) == (other, 7)


def test_two_consumers_exchange_what_they_hold(client: PlacementClient, provider: str) -> None:
    """Also where there is no room for both at once on either side."""
    other, server, migration = a_uuid(), a_uuid(), a_uuid()
    client.ensure_provider(other, other)
    client.set_inventory(other, {"VCPU": {"total": 4}})
    client.claim(server, provider, {"VCPU": 4}, "project", "user")
    client.claim(migration, other, {"VCPU": 4}, "project", "user")

    def held(consumer: str, by_provider: Any, generation: int | None) -> Replacement:
        return Replacement(consumer, by_provider, "project", "user", generation)

    mine, theirs = {other: {"VCPU": 4}}, {provider: {"VCPU": 4}}
    assert client.replace_together([held(server, mine, 1), held(migration, theirs, 1)])
    assert client.allocations_of(server).by_provider == mine
    assert client.allocations_of(migration).by_provider == theirs
    with pytest.raises(GenerationConflict):
        client.replace_together([held(server, theirs, 1), held(migration, {}, 2)])
    assert not client.replace_together([held(a_uuid(), mine, None), held(server, mine, 2)])
    assert client.replace_together([held(server, theirs, 2), held(migration, {}, 2)])
    assert client.allocations_of(server).by_provider == theirs
    assert client.allocations_of(migration).by_provider == {}


def test_claims(client: PlacementClient, provider: str) -> None:
    server = a_uuid()
    wanted = {"VCPU": 2, "MEMORY_MB": 100}
    assert client.claim(server, provider, wanted, "project", "user")
    assert client.claim(server, provider, wanted, "project", "user"), "a repeated claim"
    assert not client.claim(a_uuid(), provider, {"VCPU": 3}, "project", "user")
    with pytest.raises(GenerationConflict):
        client.claim(server, provider, {"VCPU": 1}, "project", "user")
    with pytest.raises(Invalid):
        client.claim(a_uuid(), a_uuid(), wanted, "project", "user")
    assert client.allocations_of(server) == Allocations({provider: wanted}, "project", "user", 1)
    assert client.provider_allocations(provider) == {server: wanted}
    assert client.provider_usages(provider) == wanted
    assert client.usages("project") == wanted
    assert client.usages("project", "somebody") == {}
    assert client.replace(server, {provider: {"VCPU": 4}}, "project", "user", 1)
    assert not client.replace(server, {provider: {"VCPU": 5}}, "project", "user", 2)
    with pytest.raises(GenerationConflict):
        client.replace(server, {provider: {"VCPU": 4}}, "project", "user", 1)
    with pytest.raises(Conflict):
        client.delete_provider(provider)
    client.release(server)
    client.release(server)
    assert client.allocations_of(server) == Allocations()


def test_the_global_request_id_goes_along(endpoint: str) -> None:
    client = client_at(endpoint)
    sent: list[str] = []
    session = client._call.__self__._adapter.session  # type: ignore[attr-defined]
    session.session.hooks["response"].append(
        lambda answer, **_: sent.append(answer.request.headers["X-OpenStack-Request-ID"])
    )
    now = context.RequestContext(overwrite=True)
    client.providers()
    assert sent == [now.request_id]


def test_who_may_not_is_forbidden_and_silence_is_unavailable(endpoint: str) -> None:
    from keystoneauth1 import adapter, session, token_endpoint

    def client(url: str, token: str) -> PlacementClient:
        login = session.Session(auth=token_endpoint.Token(url, token))
        return PlacementClient(adapter.Adapter(login, service_type="placement"))

    with pytest.raises(Forbidden):
        client(endpoint, "demo:demo:member").providers()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unavailable, match="Placement can't be reached"):
        client(f"http://127.0.0.1:{port}", "x:y:service").providers()


def test_what_a_proxy_says_is_unavailable() -> None:
    class Proxy:
        def request(self, *_: Any, **__: Any) -> Any:
            return type("Answer", (), {"status_code": 502, "json": lambda _: [], "content": b""})()

    with pytest.raises(Unavailable, match="502"):
        PlacementClient(Proxy()).providers()
