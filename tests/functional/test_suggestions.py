"""What a fault says would have worked is done, and a host is found."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.fixtures.auth import ADMIN, MEMBER
from tests.functional.cloud import eventually
from tests.functional.test_costs import HOSTS, Cloud, cloud, image_id, read_state

__all__ = ["cloud"]


class User:
    """Creates servers, and waits for how it ends."""

    def __init__(self, cloud: Cloud, folder: Path) -> None:
        self._cloud, self._folder = cloud, folder
        self._image = image_id(folder)

    def create(self, flavor: str = "1", group: str | None = None) -> tuple[str, str]:
        """(UUID, how it ended)."""
        body: dict[str, Any] = {
            "server": {
                "name": "s",
                "flavorRef": flavor,
                "imageRef": self._image,
                "networks": "none",
            }
        }
        if group is not None:
            body["os:scheduler_hints"] = {"group": group}
        uuid = self._cloud.call("POST", "/v2.1/servers", json=body)["server"]["id"]
        state = functools.partial(read_state, self._folder, uuid)
        return uuid, eventually(lambda: state() if state() != "building" else None)

    def group(self, policy: str, rules: Mapping[str, int]) -> str:
        """The UUID of a new group with a server on every host."""
        asked = {"name": "g", "policy": policy, "rules": dict(rules)}
        body = {"server_group": asked}
        made = self._cloud.call("POST", "/v2.1/os-server-groups", json=body)["server_group"]
        uuid = str(made["id"])
        for _ in range(HOSTS):
            assert self.create(group=uuid)[1] == "active"
        return uuid

    def shown(self, uuid: str) -> tuple[str, dict[str, Any]]:
        """(the fault that the owner reads, the suggestion that operators read); what members read
        has no number of a host's."""
        fault = self._cloud.call("GET", f"/v2.1/servers/{uuid}", MEMBER)["server"]["fault"]
        story = self._cloud.call("GET", f"/v2.1/explanations/{uuid}", ADMIN)
        [decision] = story["explanation"]["operations"][0]["decisions"]
        theirs = self._cloud.call("GET", f"/v2.1/explanations/{uuid}", MEMBER)["explanation"]
        hosts = {host for reasons in decision["refused"].values() for host in reasons}
        assert hosts
        assert not [host for host in hosts if host in str(theirs)]
        assert "free" not in str(theirs["operations"][0]["decisions"])
        assert theirs["operations"][0]["decisions"][0]["reason"] == fault["message"]
        operators = self._cloud.call("GET", f"/v2.1/servers/{uuid}", ADMIN)["server"]["fault"]
        # Clients keep 255 characters of it.
        assert decision["reason"].startswith(operators["message"])
        return fault["message"], decision["suggestion"]


def test_each_way_around_a_full_group_finds_a_host(cloud: Cloud, tmp_path: Path) -> None:
    user = User(cloud, tmp_path)
    lost, state = user.create(group=user.group("anti-affinity", {}))
    assert state == "error"
    sentence, suggestion = user.shown(lost)
    assert sentence == (
        "No valid host was found: none can take the server. It would fit in a group with "
        "max_server_per_host 2, in a group with policy soft-anti-affinity or without its "
        "server group."
    )
    ways = [
        (change["field"], change["works"])
        for way in (suggestion, *suggestion["others"])
        for change in way["changes"]
    ]
    assert ways == [
        ("max_server_per_host", 2),
        ("group_policy", "soft-anti-affinity"),
        ("group", None),
    ]
    applied = {
        "max_server_per_host": lambda most: user.group(
            "anti-affinity", {"max_server_per_host": most}
        ),
        "group_policy": lambda policy: user.group(policy, {}),
        "group": lambda none: none,
    }
    for field, works in ways:
        assert user.create(group=applied[field](works))[1] == "active", field


def test_a_flavor_cut_as_suggested_finds_a_host(cloud: Cloud, tmp_path: Path) -> None:
    def flavor(name: str, memory_mib: int) -> str:
        sizes = {"id": name, "name": name, "vcpus": 1, "ram": memory_mib, "disk": 1}
        cloud.call("POST", "/v2.1/flavors", ADMIN, json={"flavor": sizes})
        return name

    cloud.call(
        "PUT", "/v2.1/os-quota-sets/demo", ADMIN, json={"quota_set": {"ram": -1, "cores": -1}}
    )
    user = User(cloud, tmp_path)
    lost, state = user.create(flavor("huge", 100_000_000))
    assert state == "error"
    sentence, suggestion = user.shown(lost)
    [change] = suggestion["changes"]
    assert (change["field"], change["asked"]) == ("memory_mib", 100_000_000)
    names = sentence.removeprefix("No valid host was found: none has room. ")
    assert names.endswith(" would fit.")
    assert str(change["works"]) not in sentence
    known = cloud.call("GET", "/v2.1/flavors")["flavors"]
    for name in names.removesuffix(" would fit.").replace(" or ", ", ").split(", "):
        [flavor_id] = [one["id"] for one in known if one["name"] == name]
        assert user.create(flavor_id)[1] == "active"
    assert user.create(flavor("less", change["works"]))[1] == "active"
