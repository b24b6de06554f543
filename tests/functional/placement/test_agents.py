"""What an agent's user may write: its hosts' providers, and nothing else."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from falcon import testing
from oslo_config import cfg

from placement.app import make_app
from placement.operation import Services
from tests.fixtures.auth import SERVICE, header_auth, token
from tests.functional.placement.conftest import typed

pytestmark = pytest.mark.database

MINE, OTHER, CHILD = (str(uuid.UUID(int=number)) for number in (1, 2, 3))
AGENT = token("agent-1", "service", "agent", "agent@pve1", "agent@east-*")
INVENTORY = {"VCPU": {"total": 4}}


class Client:
    """Requests as one user."""

    def __init__(self, app: Any) -> None:
        self._client = testing.TestClient(app)

    def __call__(self, method: str, path: str, body: Any = None, token: str = AGENT) -> Any:
        headers = {"X-Auth-Token": token, "OpenStack-API-Version": "placement 1.39"}
        more = {} if body is None else {"json": body}
        return self._client.simulate_request(method, path, headers=headers, **more)

    def status(self, method: str, path: str, body: Any = None, token: str = AGENT) -> int:
        return int(self(method, path, body, token).status_code)


@pytest.fixture
def ask(conf: cfg.ConfigOpts, services: Services) -> Client:
    client = Client(typed(make_app(conf, header_auth, services)))
    for name, made in (("pve1", MINE), ("pve2", OTHER)):
        body = {"name": name, "uuid": made}
        assert client.status("POST", "/resource_providers", body, SERVICE) == 200
    return client


def inventories(ask: Client, provider: str) -> Any:
    return ask("GET", f"/resource_providers/{provider}/inventories", token=SERVICE).json


def writes(provider: str, generation: int = 0) -> list[tuple[str, str, Any]]:
    """Every change of a provider that an agent makes."""
    path, known = f"/resource_providers/{provider}", {"resource_provider_generation": generation}
    return [
        ("PUT", f"{path}/inventories", known | {"inventories": INVENTORY}),
        ("PUT", f"{path}/inventories/VCPU", known | {"total": 8}),
        ("PUT", f"{path}/traits", known | {"traits": ["COMPUTE_NODE"]}),
        ("PUT", path, {"name": "pve1"}),
    ]


def test_an_agent_publishes_its_hosts(ask: Client) -> None:
    for generation, (method, path, body) in enumerate(writes(MINE)):
        changed = {**body}
        if "resource_provider_generation" in changed:
            changed["resource_provider_generation"] = generation
        answer = ask(method, path, changed)
        assert answer.status_code == 200, answer.text
    new = {"name": "east-17", "uuid": str(uuid.uuid4())}
    assert ask.status("POST", "/resource_providers", new) == 200
    many = {"name": "east-18", "uuid": str(uuid.uuid4()), "inventories": INVENTORY, "traits": []}
    answer = ask("POST", "/micronova/resource_providers", {"resource_providers": [many]})
    assert answer.json["created"] == [many["uuid"]]
    assert ask.status("PUT", "/resource_classes/CUSTOM_GPU") in (201, 204)
    assert ask.status("PUT", "/traits/CUSTOM_FAST") in (201, 204)
    for path in ("/resource_providers", f"/resource_providers/{OTHER}/traits", "/traits"):
        assert ask.status("GET", path) == 200


@pytest.mark.parametrize(("method", "path", "body"), writes(OTHER))
def test_an_agent_changes_no_other_host(ask: Client, method: str, path: str, body: Any) -> None:
    before = inventories(ask, OTHER)
    answer = ask(method, path, body)
    assert answer.status_code == 403, answer.text
    assert inventories(ask, OTHER) == before


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/resource_providers", {"name": "pve3"}),
        ("POST", "/resource_providers", {"name": "pve11"}),
        ("POST", "/resource_providers", {"name": "PVE1"}),
        ("POST", "/resource_providers", {"name": "xeast-1"}),
        ("POST", "/resource_providers", {"name": "pve1-gpu", "parent_provider_uuid": OTHER}),
        (
            *("POST", "/resource_providers"),
            {"name": "pve1-gpu", "parent_provider_uuid": str(uuid.uuid4())},
        ),
        (
            *("POST", "/micronova/resource_providers"),
            {
                "resource_providers": [
                    {"name": n, "uuid": str(uuid.uuid4()), "inventories": {}, "traits": []}
                    for n in ("east-1", "pve3")
                ]
            },
        ),
        ("PUT", f"/resource_providers/{MINE}", {"name": "pve3"}),
        ("PUT", f"/resource_providers/{MINE}", {"name": "pve1", "parent_provider_uuid": OTHER}),
        ("DELETE", f"/resource_providers/{MINE}", None),
        ("DELETE", f"/resource_providers/{MINE}/inventories", None),
        ("DELETE", f"/resource_providers/{MINE}/traits", None),
        (
            *("PUT", f"/resource_providers/{MINE}/aggregates"),
            {"aggregates": [], "resource_provider_generation": 0},
        ),
        (
            *("PUT", f"/allocations/{uuid.uuid4()}"),
            {
                "allocations": {MINE: {"resources": {"VCPU": 1}}},
                "project_id": "p",
                "user_id": "u",
                "consumer_generation": None,
                "consumer_type": "INSTANCE",
            },
        ),
        ("DELETE", f"/allocations/{uuid.uuid4()}", None),
        ("POST", "/allocations", {}),
        ("POST", "/micronova/allocations", {"release": [str(uuid.uuid4())]}),
        ("POST", "/reshaper", {}),
        ("GET", f"/resource_providers/{MINE}/allocations", None),
        ("GET", "/allocation_candidates?resources=VCPU:1", None),
        ("GET", "/usages?project_id=p", None),
        ("GET", "/micronova/allocations", None),
        ("DELETE", "/resource_classes/CUSTOM_GPU", None),
        ("DELETE", "/traits/CUSTOM_FAST", None),
    ],
)
def test_an_agent_does_nothing_else(ask: Client, method: str, path: str, body: Any) -> None:
    before = ask("GET", "/resource_providers", token=SERVICE).json
    assert ask.status(method, path, body) == 403
    assert ask("GET", "/resource_providers", token=SERVICE).json == before


def test_a_part_of_a_host_is_its_agent_s(ask: Client) -> None:
    body = {"name": "gpu", "uuid": CHILD, "parent_provider_uuid": MINE}
    assert ask.status("POST", "/resource_providers", body) == 200
    given = {"inventories": {}, "resource_provider_generation": 0}
    assert ask.status("PUT", f"/resource_providers/{CHILD}/inventories", given) == 200
    other = token("agent-2", "service", "agent", "agent@pve2", "agent@gpu")
    assert ask.status("PUT", f"/resource_providers/{CHILD}/inventories", given, other) == 403


@pytest.mark.parametrize(
    "roles",
    [
        ("agent",),
        ("agent@pve2",),
        ("member", "agent@pve2"),
        ("agent", "agent:"),
        ("agent", "agent:*"),
    ],
)
def test_roles_that_name_no_host_allow_nothing(ask: Client, roles: tuple[str, ...]) -> None:
    other = token("agent-2", "service", *roles)
    method, path, body = writes(OTHER)[0]
    assert ask.status(method, path, body, other) == 403


def test_one_agent_may_have_all_hosts(ask: Client) -> None:
    method, path, body = writes(OTHER)[0]
    assert ask.status(method, path, body, token("a", "service", "agent", "agent@*")) == 200


def test_a_provider_that_is_not_there_is_not_found(ask: Client) -> None:
    method, path, body = writes(str(uuid.uuid4()))[0]
    assert ask.status(method, path, body) == 404


def test_services_and_administrators_are_no_agents(ask: Client) -> None:
    for role in ("service", "admin"):
        other = token("x", "service", role, "agent", "agent@pve1")
        given = {"inventories": {}, "resource_provider_generation": 0}
        assert ask.status("PUT", f"/resource_providers/{OTHER}/inventories", given, other) in (
            *(200, 409),
        )
