"""What a `POST /servers` asks for, before anything is looked up."""

from __future__ import annotations

from typing import Any

import pytest

from api.compute.policies import REQUESTED_DESTINATION
from api.compute.resources.servers.place import FORCED_HOST
from api.compute.resources.servers.requested import Requested, parse
from common.errors import HostNotFound, Invalid, MicronovaError, NotSupported

IMAGE = "70a599e0-31e7-49b7-b260-868f441e862b"
NETWORK = "d32019d3-bc6e-4319-9c1d-6722fc136a22"


def asked(*, hints: dict[str, Any] | None = None, **fields: Any) -> Requested:
    server = {"name": " a ", "imageRef": IMAGE, "flavorRef": "http://h/flavors/1", **fields}
    return parse({"server": server, "os:scheduler_hints": hints or {}}, version=90)


def test_a_plain_server() -> None:
    found = asked()
    assert (found.flavor, found.image, found.devices) == ("http://h/flavors/1", IMAGE, ())
    assert found.groups == ("default",)
    assert found.fields["name"] == "a"
    assert found.fields["auto_network"] and not found.fields["needs_network"]
    assert not found.names_networks and not found.is_near and found.place.rule is None


def test_before_descriptions_a_server_is_described_by_its_name() -> None:
    body = {"server": {"name": " a ", "imageRef": IMAGE, "flavorRef": "1", "description": "x"}}
    assert parse(body, version=18).fields["description"] == " a "
    assert parse(body, version=19).fields["description"] == "x"


@pytest.mark.parametrize(
    ("wanted", "named", "auto", "needed"),
    [
        ("none", False, False, False),
        ("auto", True, True, True),
        ([], False, True, False),
        ([{"uuid": NETWORK}], True, False, False),
    ],
)
def test_networks(wanted: Any, named: bool, auto: bool, needed: bool) -> None:
    found = asked(networks=wanted)
    fields = found.fields
    assert (found.names_networks, fields["auto_network"], fields["needs_network"]) == (
        named,
        auto,
        needed,
    )


def test_the_rule_about_a_host_depends_on_how_it_is_named() -> None:
    assert asked(availability_zone="z").place.rule is None
    assert asked(availability_zone="z:h").place.rule == FORCED_HOST
    assert asked(host="h").place.rule == REQUESTED_DESTINATION


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"trusted_image_certificates": ["x"]}, NotSupported),
        ({"min_count": 3, "max_count": 2}, Invalid),
        ({"availability_zone": "z:h:n:x"}, Invalid),
        ({"availability_zone": "z:h", "host": "h"}, Invalid),
        ({"host": "a", "hypervisor_hostname": "b"}, HostNotFound),
        ({"networks": [{"uuid": NETWORK, "fixed_ip": "10.0.0.9"}], "max_count": 2}, Invalid),
        ({"networks": [{"port": NETWORK}, {"port": NETWORK}]}, Invalid),
        ({"hints": {"group": [IMAGE, NETWORK]}}, Invalid),
        ({"hints": {"build_near_host_ip": "10.0.0.1", "cidr": "/x"}}, Invalid),
    ],
)
def test_what_contradicts_itself(fields: dict[str, Any], error: type[MicronovaError]) -> None:
    with pytest.raises(error):
        asked(**fields)
