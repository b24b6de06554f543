"""The rules of each API and its operations know each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from api import volume_policies
from api.clustering import policies as clustering_policies
from api.clustering import routes as clustering
from api.compute import policies as compute_policies
from api.compute import routes as compute
from api.image import app as image
from api.network import app as network
from api.volume import routes as volume
from web.protected import Protected, Served

Operations = Mapping[str, list[Protected]]
APIS = {
    "compute": (compute_policies.RULES, compute.served(), compute.operations()),
    "volume": (volume_policies.RULES, volume.served(), volume.operations()),
    "clustering": (clustering_policies.RULES, clustering.served(), clustering.operations()),
    "image": (image.RULES, image.served(), image.operations()),
    "network": (network.RULES, network.served(), network.operations()),
}


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> tuple[Any, Iterable[Served], Operations]:
    return APIS[request.param]


def test_every_rule_that_an_operation_names_is_declared_once(api: Any) -> None:
    rules, served, _ = api
    names = [rule.name for rule in rules]
    assert len(names) == len(set(names))
    borrowed = {"get_images"}
    named = {name for _, _, described in served for name in described.rules}
    assert named - borrowed <= set(names)


def test_every_rule_of_a_project_protects_an_operation(api: Any) -> None:
    """Rules without scopes are those that others refer to."""
    rules, _, operations = api
    assert [one.name for one in rules if one.scope_types and not operations[one.name]] == []


def test_operations_that_share_a_rule_are_listed_in_order() -> None:
    listed = image.operations()["modify_image"]
    item = "/v2/images/{image_id}"
    assert listed == [
        ("PATCH", item),
        ("POST", f"{item}/import"),
        ("PUT", f"{item}/tags/{{tag}}"),
        ("DELETE", f"{item}/tags/{{tag}}"),
    ]


def test_a_longer_name_protects_what_the_shorter_one_does() -> None:
    found = compute.operations()
    assert found["os_compute_api:servers:create:forced_host"] == [("POST", "/servers")]
    assert network.operations()["create_port:mac_address"] == [("POST", "/v2.0/ports")]


def test_a_path_that_ended_is_no_example_of_a_rule() -> None:
    """The old actions for consoles come first in the table, and ended with 2.5."""
    found = compute.operations()["os_compute_api:os-remote-consoles"]
    assert found == [("POST", "/servers/{server_id}/remote-consoles")]
