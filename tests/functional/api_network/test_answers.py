"""What the Network API answers, held against the attributes that neutron-lib defines.

Of each record that the API shows: all that Neutron's core shows and the extensions that are
announced show, and nothing else.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from api.network.discovery import EXTENSIONS
from tests.fixtures import auth, responses
from tests.functional.api_network.test_revisions import call, make, url, world

__all__ = ("url", "world")

DEFINED: dict[str, dict[str, list[str]]] = json.loads(
    Path(responses.__file__).with_name("network.json").read_text(encoding="utf-8")
)["extensions"]
CORE = ("network", "subnet", "port")
#: extensions of attributes that all kinds of records get, those with tags only some
STANDARD = {
    "standard-attr-description": {"description"},
    "standard-attr-timestamp": {"created_at", "updated_at"},
    "standard-attr-revisions": {"revision_number"},
    "project-id": {"project_id"},
}
TAGGED = {"networks", "subnets", "ports", "security_groups"}
#: what Neutron's own code defines, outside of neutron-lib (neutron/extensions/securitygroup.py)
OWN = {
    "security_groups": {"id", "name", "tenant_id", "security_group_rules", "shared"},
    "ports": {"security_groups"},
}
RULE = {"id", "tenant_id", "security_group_id", "direction", "ethertype", "protocol"}
OWN["security_group_rules"] = RULE | {
    *("port_range_min", "port_range_max", "remote_ip_prefix", "remote_group_id"),
}


#: shown to administrators alone, by Neutron's own policies
FOR_ADMINISTRATORS = {
    *(f"binding:{name}" for name in ("host_id", "profile", "vif_details", "vif_type")),
    *(f"provider:{name}" for name in ("network_type", "physical_network", "segmentation_id")),
}
#: what every Neutron with agents shows, whose extension is not announced, as there are none
ALWAYS = {"availability_zone_hints"}


def expected(collection: str) -> set[str]:
    announced = [*CORE, *EXTENSIONS]
    shown = {one for alias in announced for one in DEFINED.get(alias, {}).get(collection, ())}
    for alias, attributes in STANDARD.items():
        shown |= attributes if alias in EXTENSIONS else set()
    if collection in TAGGED:
        shown.add("tags")
    return shown | OWN.get(collection, set())


@pytest.mark.parametrize("token", [auth.MEMBER, auth.ADMIN])
def test_records_have_neutron_s_attributes(url: str, token: str) -> None:
    network = make(url, "network", name="n")
    make(url, "subnet", network_id=network["id"], ip_version=4, cidr="10.9.0.0/24")
    make(url, "port", network_id=network["id"])
    group = make(url, "security_group", name="g")
    make(url, "security_group_rule", security_group_id=group["id"], direction="ingress")
    make(url, "address_group", name="a", addresses=["10.0.0.0/8"])
    wrong: dict[str, Any] = {}
    for collection in (*OWN, "networks", "subnets", "address_groups"):
        path = collection.replace("_", "-")
        listed = call(f"{url}/{path}", token=token).json()[collection]
        assert listed, collection
        for record in listed:
            wanted = expected(collection)
            if token == auth.MEMBER:
                wanted -= FOR_ADMINISTRATORS
            missing, more = wanted - set(record), set(record) - wanted - ALWAYS
            if missing or more:
                wrong[collection] = {"missing": sorted(missing), "more": sorted(more)}
    assert wrong == {}
