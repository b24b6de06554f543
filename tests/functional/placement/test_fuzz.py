"""Bad input of every kind: whatever is sent, the service answers, and never with a 500.

Every example is a handful of requests against a service that has providers, traits and claims.
MICRONOVA_TEST_FUZZ is how many examples there are, twelve requests each, on every database
(default 40; `tox -e properties` takes 600).
"""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placement.routes import ROUTES
from tests.functional.placement.builders import a_body, a_provider, a_uuid

EXAMPLES = int(os.environ.get("MICRONOVA_TEST_FUZZ", "40"))
pytestmark = pytest.mark.timeout(60 + 2 * EXAMPLES)
METHODS = ("GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "HEAD")
KNOWN = ["11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"]
NAMES = ["VCPU", "MEMORY_MB", "CUSTOM_A", "HW_CPU_X86_VMX", "MISC_SHARES_VIA_AGGREGATE"]
numbers = st.sampled_from([0, 1, 2, 3, -1, 2**31 - 1, 2**31, 2**63, 2**64, 10**30, 0.5, 1e308])
texts = st.text(max_size=12) | st.sampled_from(
    [*KNOWN, *NAMES, "", "\0", "a" * 300, "'; --", "%", "\u2603", "in:", "!", "None", "CUSTOM_\0"]
)
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
versions = st.sampled_from(
    [*(f"placement 1.{n}" for n in (0, 1, 7, 8, 10, 12, 17, 19, 25, 27, 28, 29, 34, 36, 38, 39))]
) | st.sampled_from(["placement latest", "placement 1.40", "placement x", "placement 1.1.1", ""])
QUERY = ("resources", "resources1", "resources_A", "required", "required1", "member_of", "limit")
QUERY += ("group_policy", "in_tree", "in_tree1", "same_subtree", "root_required", "name", "uuid")
QUERY += ("project_id", "user_id", "consumer_type", "associated", "nonsense")
asked = st.sampled_from(
    [
        "VCPU:1",
        "VCPU:1,MEMORY_MB:2",
        "VCPU:0",
        "VCPU:99999999999999999999999",
        "VCPU",
        "CUSTOM_A:1",
        "none",
        "isolate",
        "1",
        "0",
        "-1",
        "_A,1",
        "in:HW_CPU_X86_VMX,CUSTOM_A",
        "!HW_CPU_X86_VMX",
        f"in:{KNOWN[0]},{KNOWN[1]}",
        f"!{KNOWN[0]}",
        *KNOWN,
    ]
)
queries = st.lists(st.tuples(st.sampled_from(QUERY), asked | texts), max_size=4)
good_bodies = st.sampled_from(
    [
        {"name": "one", "uuid": KNOWN[0]},
        {"name": "two", "parent_provider_uuid": KNOWN[0]},
        {"name": "CUSTOM_B"},
        {"traits": ["CUSTOM_A"], "resource_provider_generation": 1},
        {"aggregates": [KNOWN[0]], "resource_provider_generation": 1},
        [KNOWN[0], KNOWN[1]],
        {"resource_class": "VCPU", "total": 5, "resource_provider_generation": 1},
        {"inventories": {"VCPU": {"total": 5}}, "resource_provider_generation": 1},
        {"total": 5, "resource_provider_generation": 1, "allocation_ratio": 1.5},
        a_body(**{KNOWN[0]: {"VCPU": 1}}),
        {KNOWN[1]: a_body(**{KNOWN[0]: {"VCPU": 1}})},
        {
            "inventories": {
                KNOWN[0]: {
                    "inventories": {"VCPU": {"total": 5}},
                    "resource_provider_generation": 1,
                }
            },
            "allocations": {KNOWN[1]: a_body(**{KNOWN[0]: {"VCPU": 1}})},
        },
    ]
)


@st.composite
def spoiled(draw: st.DrawFn) -> Any:
    """A good body in which some values are others."""

    def walk(value: Any) -> Any:
        if draw(st.integers(0, 9)) == 0:
            return draw(values)
        if isinstance(value, dict):
            kept = {key: walk(one) for key, one in value.items() if draw(st.integers(0, 19))}
            return kept | ({draw(texts): draw(values)} if draw(st.integers(0, 9)) == 0 else {})
        return [walk(one) for one in value] if isinstance(value, list) else value

    return walk(draw(good_bodies))


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    path = draw(st.sampled_from([*ROUTES, "/nowhere"]))
    for part in ("{uuid}", "{consumer_uuid}", "{resource_class}", "{name}"):
        if part in path:
            path = path.replace(
                part, quote(draw(st.sampled_from([*KNOWN, *NAMES]) | texts)) or "x"
            )
    body = draw(
        st.none()
        | st.binary(max_size=20)
        | (good_bodies | spoiled() | values).map(lambda value: json.dumps(value).encode())
    )
    headers = {"OpenStack-API-Version": draw(versions)}
    if body is not None:
        kinds = ["application/json"] * 6 + ["text/plain", "application/json; charset=x", ""]
        headers["Content-Type"] = draw(st.sampled_from(kinds))
    if draw(st.integers(0, 9)) == 0:
        headers["Accept"] = draw(st.sampled_from(["text/html", "*/*;q=0", "x", ","]))
    return {
        "method": draw(st.sampled_from(METHODS[:4]) | st.sampled_from(METHODS)),
        "path": path,
        "params": dict(draw(queries)),
        "body": body,
        "headers": headers,
    }


@pytest.fixture
def world(api: Any) -> Any:
    """A service with two providers (one below the other), a custom trait and class, a claim."""
    for number, one in enumerate(KNOWN):
        body = {"name": f"node-{number}", "uuid": one}
        body |= {"parent_provider_uuid": KNOWN[0]} if number else {}
        assert api.simulate_post("/resource_providers", json=body).status_code == 200
    api.simulate_put("/traits/CUSTOM_A")
    api.simulate_put("/resource_classes/CUSTOM_A")
    provider = a_provider(api)
    claimed = api.simulate_put(f"/allocations/{a_uuid()}", json=a_body(**{provider: {"VCPU": 1}}))
    assert claimed.status_code == 204
    return api


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(some=st.lists(requests(), min_size=12, max_size=12))
def test_nothing_makes_it_stumble(world: Any, some: list[dict[str, Any]]) -> None:
    for one in some:
        answer = world.simulate_request(**one)
        assert answer.status_code < 500, (one, answer.text)
