"""What Senlin's policies have and ours have not is refused, each in a sentence of its own."""

from __future__ import annotations

from typing import Any

import pytest

from api.clustering.policy_specs import ABSENT_POLICIES, POLICY_TYPES
from tests.functional.api_clustering.conftest import ClusteringApi

DELETION, HEALTH = POLICY_TYPES


def refused(api: ClusteringApi, kind: str, version: str, **properties: Any) -> tuple[int, str]:
    """The status and the sentence with which a policy is refused; there is none then."""
    spec = {"type": kind, "version": version, "properties": properties}
    body = {"policy": {"name": "x", "spec": spec}}
    status, answer = api.ask("POST", "/policies", body)
    assert api.ask("POST", "/policies/validate", body) == (status, answer)
    assert api.show("/policies", "policies") == []
    return status, answer["error"]["message"]


@pytest.mark.parametrize("kind", sorted(ABSENT_POLICIES))
def test_types_that_there_are_not(api: ClusteringApi, kind: str) -> None:
    sentence = f"Policies of the type {kind} are not supported. {ABSENT_POLICIES[kind]}"
    assert refused(api, kind, "1.0", anything=1) == (501, sentence)
    assert sentence.endswith(".")


@pytest.mark.parametrize(
    ("kind", "version"),
    [(DELETION, "1.2"), (DELETION, "2"), (HEALTH, "1.3"), ("senlin.policy.luck", "1.0")],
)
def test_types_that_nobody_has(api: ClusteringApi, kind: str, version: str) -> None:
    sentence = f"The policy_type '{kind}-{version}' could not be found."
    assert refused(api, kind, version) == (400, sentence)


@pytest.mark.parametrize(
    ("properties", "begin"),
    [
        ({"hooks": {"type": "zaqar"}}, "Hooks before a deletion are not supported."),
        ({"reduce_desired_capacity": False}, "reduce_desired_capacity can't be false"),
        ({"grace_period": 60}, "A grace_period before deletions is not supported."),
    ],
)
def test_deletions(api: ClusteringApi, properties: dict[str, Any], begin: str) -> None:
    status, sentence = refused(api, DELETION, "1.1", **properties)
    assert (status, sentence[: len(begin)], sentence[-1]) == (501, begin, ".")


@pytest.mark.parametrize(
    ("recovery", "begin"),
    [
        ({"fencing": ["COMPUTE"]}, "Fencing is not supported"),
        ({"node_force_recreate": True}, "node_force_recreate is not supported"),
        ({"node_delete_timeout": 90}, "node_delete_timeout is not supported"),
        ({"actions": [{"name": "REBOOT", "params": {"type": "SOFT"}}]}, "Parameters of REBOOT"),
        ({"actions": [{"name": "REBUILD", "params": {"fast": True}}]}, "Parameters of REBUILD"),
    ],
)
def test_repairs(api: ClusteringApi, recovery: dict[str, Any], begin: str) -> None:
    status, sentence = refused(api, HEALTH, "1.2", recovery=recovery)
    assert (status, sentence[: len(begin)], sentence[-1]) == (501, begin, ".")


@pytest.mark.parametrize(
    ("kind", "properties"),
    [
        (DELETION, {"colour": "red"}),
        (DELETION, {"criteria": "UGLIEST_FIRST"}),
        (DELETION, {"destroy_after_deletion": "perhaps"}),
        (DELETION, {"grace_period": "soon"}),
        (DELETION, {"reduce_desired_capacity": "perhaps"}),
        (DELETION, {"hooks": "none"}),
        (HEALTH, {"recovery": {"colour": "red"}}),
        (HEALTH, {"recovery": {"actions": [{"name": "REBOOT", "colour": "red"}]}}),
        (HEALTH, {"recovery": {"node_delete_timeout": "soon"}}),
    ],
)
def test_what_nobody_has(api: ClusteringApi, kind: str, properties: dict[str, Any]) -> None:
    assert refused(api, kind, POLICY_TYPES[kind], **properties)[0] == 400


@pytest.mark.parametrize(
    ("kind", "version", "properties"),
    [
        (DELETION, "1.0", {"grace_period": 0, "reduce_desired_capacity": True, "hooks": {}}),
        (HEALTH, "1.0", {"recovery": {"node_delete_timeout": 20, "node_force_recreate": False}}),
        (HEALTH, "1.1", {"recovery": {"fencing": [], "actions": [{"name": "REBUILD"}]}}),
        (HEALTH, "1.2", {"recovery": {"actions": [{"name": "REBOOT", "params": {}}]}}),
        (
            HEALTH,
            "1.2",
            {"recovery": {"actions": [{"name": "REBOOT", "params": {"type": "HARD"}}]}},
        ),
    ],
)
def test_what_says_no_more_than_it_does_anyway(
    api: ClusteringApi, kind: str, version: str, properties: dict[str, Any]
) -> None:
    spec = {"type": kind, "version": version, "properties": properties}
    assert api.ask("POST", "/policies", {"policy": {"name": "x", "spec": spec}})[0] == 201
