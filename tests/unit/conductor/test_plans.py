"""Plans and what was asked: as they are kept, and as the release before kept them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from common.messages.commands import Image, Nic, Template
from common.messages.scheduling import Alternate
from conductor.plans import (
    PARAMS,
    PLANS,
    AdoptParams,
    CreateParams,
    CreatePlan,
    DeletePlan,
    FollowPlan,
    Interface,
    Params,
    Place,
    Plan,
    ReapPlan,
    dump_plan,
    load_params,
    load_plan,
)

TARGET = Place("pve1", "uuid-pve1", "sim1", "pve1", 100)
BUILD = CreatePlan(
    TARGET,
    worker="w1",
    storage="local",
    alternates=(Alternate("pve2", "uuid-pve2", 0.5),),
    failed_hosts=("pve3",),
    awaited=("pve3",),
    excused=1,
    waits=2,
    refusals=3,
    image=Image("i", "debian", "shared:import/debian.qcow2", properties={"os_type": "linux"}),
    template=Template(900, "pve1", "local"),
    nics=(Nic("p", "n", "net", "vmbr0", "aa:bb", dns=("9.9.9.9",)),),
    too_few="",
)
ASKED = CreateParams((Interface("n", "net", "vmbr0", 7, 1500, "10.0.0.5"),), "pve1", "s3cr3t")

#: a plan as the release before kept it, for every action alike
BEFORE: dict[str, Any] = {
    "host": "pve1",
    "uuid": "uuid-pve1",
    "cluster": "sim1",
    "node": "pve1",
    "worker": "w1",
    "vmid": 100,
    "storage": "local",
    "alternates": [{"host": "pve2", "uuid": "uuid-pve2", "score": 0.5}],
    "failed_hosts": ["pve3"],
    "awaited": ["pve3"],
    "excused": 1,
    "waits": 2,
    "refusals": 3,
    "image": {
        "id": "i",
        "name": "debian",
        "volid": "shared:import/debian.qcow2",
        "size_bytes": 0,
        "min_disk_gib": 0,
        "checksum": None,
        "properties": {"os_type": "linux"},
    },
    "template": {"vmid": 900, "node": "pve1", "storage": "local"},
    "nics": [
        {
            "port_id": "p",
            "network_id": "n",
            "network_name": "net",
            "bridge": "vmbr0",
            "mac": "aa:bb",
            "mtu": None,
            "vlan": None,
            "ip": None,
            "cidr": None,
            "gateway": None,
            "dns": ["9.9.9.9"],
        }
    ],
    "stopped_on": "pve2",
    "drive_only": True,
    "left_behind": None,
    "too_few": "",
    "saw": "moved",
}


def kept(value: object) -> Any:
    """As it comes back from a JSON column."""
    return orjson.loads(orjson.dumps(value))


@pytest.mark.parametrize(
    ("action", "plan"),
    [
        ("create", BUILD),
        ("create", CreatePlan()),
        ("reap", ReapPlan(TARGET, "pve2", drive_only=True)),
        ("reap", ReapPlan(TARGET, drive_only=True, left_behind="local:iso/left.iso")),
        ("follow", FollowPlan(TARGET, Place("pve2", None, "sim1", "pve2", 100), "moved")),
        ("delete", DeletePlan(TARGET, ("m",))),
        ("stop", Plan(TARGET)),
    ],
)
def test_a_plan_comes_back_as_it_was_kept(action: str, plan: Plan) -> None:
    assert load_plan(action, kept(dump_plan(plan))) == plan


@pytest.mark.parametrize(
    ("action", "plan"),
    [
        ("create", BUILD),
        ("reap", ReapPlan(TARGET, "pve2", drive_only=True)),
        ("follow", FollowPlan(TARGET, saw="moved")),
        ("adopt", Plan(TARGET)),
        ("an action to come", Plan(TARGET)),
    ],
)
def test_a_plan_of_the_release_before_is_read(action: str, plan: Plan) -> None:
    assert load_plan(action, BEFORE) == plan
    assert load_plan(action, {}) == PLANS.get(action, Plan)()


@pytest.mark.parametrize("plan", [BUILD, ReapPlan(TARGET, "pve2"), FollowPlan(TARGET, saw="x")])
def test_the_release_before_finds_what_it_knows_where_it_was(plan: Plan) -> None:
    """Its keys are flat: it must never take a reserved VM for none."""
    found = kept(dump_plan(plan))
    assert {key: BEFORE[key] for key in vars(TARGET)}.items() <= found.items()
    of_volumes = {"has_volumes": False, "making_since": None}
    assert found.keys() - BEFORE.keys() <= {"source", *of_volumes}
    if plan is BUILD:
        # It ignores what it doesn't know.
        new = {
            "tag": None,
            "routes": [],
            "filtered": False,
            "down": False,
            "second": None,
            "more": [],
        }
        nics = [nic | new for nic in BEFORE["nics"]]
        image = {**BEFORE["image"], "template_only": False, "cd": False, "virtual_size_bytes": 0}
        known = {key: BEFORE[key] for key in found if key not in of_volumes}
        assert found == known | {"nics": nics, "image": image} | of_volumes


def test_what_was_asked_comes_back_and_is_read_from_the_release_before() -> None:
    assert load_params("create", kept(ASKED)) == ASKED
    assert load_params("adopt", kept(AdoptParams("u"))) == AdoptParams("u")
    interface = {"id": "n", "name": "net", "bridge": "vmbr0", "vlan": 7, "mtu": 1500}
    before = {
        "networks": [interface | {"fixed_ip": "10.0.0.5"}],
        "force_host": "pve1",
        "admin_password": "s3cr3t",
        "least_memory_mib": 0,
        "least_disk_gib": 0,
    }
    assert load_params("create", before) == ASKED
    now = {
        "networks": [
            interface
            | {"fixed_ip": "10.0.0.5", "tag": None, "port_id": None}
            | {"up": True, "port_security": True}
        ]
    }
    assert kept(ASKED) == before | now | {"min_count": 1, "files": [], "image_home": None}


@pytest.mark.parametrize("action", [*PARAMS, "delete"])
def test_what_was_asked_may_be_forgotten(action: str) -> None:
    assert load_params(action, {}) == PARAMS.get(action, Params)()


def test_a_password_is_not_shown() -> None:
    assert "s3cr3t" not in repr(ASKED)
