"""Plans and what was asked, as a row stores them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from common.messages.commands import Destroy, Image, Nic, Template
from common.messages.scheduling import Alternate
from conductor.plans import (
    PARAMS,
    PLANS,
    AdoptParams,
    CommandPlan,
    CreateParams,
    CreatePlan,
    DeletePlan,
    FollowPlan,
    Interface,
    Params,
    Place,
    Plan,
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
ASKED = CreateParams(
    networks=(Interface("n", "net", "vmbr0", 7, 1500, "10.0.0.5"),),
    force_host="pve1",
    admin_password="s3cr3t",
)


def kept(value: object) -> Any:
    """As it comes back from a JSON column."""
    return orjson.loads(orjson.dumps(value))


@pytest.mark.parametrize(
    ("action", "plan"),
    [
        ("create", BUILD),
        ("create", CreatePlan()),
        ("reap", CommandPlan(TARGET, Destroy(stopped_on="pve2", drive_only=True))),
        ("reap", CommandPlan(TARGET, Destroy(drive_only=True, left_behind="local:iso/left.iso"))),
        ("follow", FollowPlan(TARGET, Place("pve2", None, "sim1", "pve2", 100), "moved")),
        ("delete", DeletePlan(TARGET, ("m",))),
        ("stop", Plan(TARGET)),
    ],
)
def test_a_plan_comes_back_as_it_was_kept(action: str, plan: Plan) -> None:
    assert load_plan(action, kept(plan)) == plan


@pytest.mark.parametrize("action", [*PLANS, "stop", "an action to come"])
def test_a_plan_without_what_came_later_is_read(action: str) -> None:
    kind = PLANS.get(action, Plan)
    assert load_plan(action, {}) == kind()
    assert load_plan(action, {"target": kept(TARGET), "more": 1}) == kind(TARGET)


def test_what_was_asked_comes_back() -> None:
    assert load_params("create", kept(ASKED)) == ASKED
    assert load_params("adopt", kept(AdoptParams("u"))) == AdoptParams("u")


@pytest.mark.parametrize("action", [*PARAMS, "delete"])
def test_what_was_asked_may_be_forgotten(action: str) -> None:
    assert load_params(action, {}) == PARAMS.get(action, Params)()


def test_a_password_is_not_shown() -> None:
    assert "s3cr3t" not in repr(ASKED)
