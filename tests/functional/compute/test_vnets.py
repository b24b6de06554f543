"""An agent makes and removes the SDN vnets of networks, and touches nobody else's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from common import clock, ids
from common.failures import Verdict
from common.messages.commands import MakeVnet, Placed, RemoveVnet
from common.messages.reports import Category
from common.resources import vnets
from common.resources.states import ResourceType
from compute import preflight
from compute.hypervisor.proxmox.api import privileges
from compute.hypervisor.proxmox.sdn import vnets as sdn_vnets
from compute.hypervisor.proxmox.settings import Token
from tests.fixtures.root_shell import RootShell
from tests.functional.compute.conftest import CLOUD, Worker, as_root, configuration, proxmox_text
from tests.functional.compute.test_preflight import Root
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually

ZONE, VNI = "tenants", 5000
_numbers = iter(range(900_000, 1_000_000))


@pytest.fixture
def root(simulator: RunningSimulator, worker: Worker) -> Any:
    """An administrator, who has made the zone."""
    made = as_root(simulator)
    made.cluster.sdn.zones.post(zone=ZONE, type="vxlan", peers="10.0.0.1", mtu=1400)
    upid = made.cluster.sdn.put()
    node = upid.split(":")[1]
    eventually(lambda: made.nodes(node).tasks(upid).status.get()["status"] == "stopped")
    return made


def a_make(network_id: str = "", **changes: Any) -> MakeVnet:
    network_id = network_id or ids.new_uuid()
    values: dict[str, Any] = {"vnet": vnets.name(network_id), "zone": ZONE, "vni": VNI}
    values["cloud"] = CLOUD
    placed = Placed("pve1", "c1", "pve1", 0)
    return MakeVnet(
        next(_numbers),
        1,
        ResourceType.NETWORK,
        network_id,
        placed,
        clock.after(60),
        **(values | changes),
    )


def a_removal(made: MakeVnet, **changes: Any) -> RemoveVnet:
    values = {"vnet": made.vnet, "zone": made.zone, "cloud": made.cloud} | changes
    return RemoveVnet(
        next(_numbers),
        1,
        ResourceType.NETWORK,
        made.resource_id,
        made.placed,
        clock.after(60),
        **values,
    )


def listed(root: Any) -> list[dict[str, Any]]:
    return list(root.cluster.sdn.vnets.get(pending=1))


def token_of(simulator: RunningSimulator) -> Token:
    name, _, _ = simulator.token_file.read_text().partition("=")
    user, _, token = name.partition("!")
    return Token(user, token, "")


def grant_all(simulator: RunningSimulator) -> None:
    rights, token = Root(simulator), token_of(simulator)
    for kind, who in (("users", token.user), ("tokens", token.id)):
        rights.ask("PUT", "access/acl", path="/sdn", roles="PVESDNAdmin", **{kind: who})


def test_a_vnet_comes_with_the_zone_s_mtu_and_goes(
    simulator: RunningSimulator, worker: Worker, root: Any
) -> None:
    grant_all(simulator)
    command = a_make()
    outcome = worker.run(command)
    assert (outcome.failure, outcome.mtu) == (None, 1400)
    (seen,) = listed(root)
    assert (seen["tag"], seen["alias"], "state" in seen) == (
        VNI,
        f"{command.resource_id} {CLOUD} {command.operation_id}",
        False,
    )
    # Servers can be made on it as soon as the outcome is known.
    beats = worker.conductor.heartbeats
    worker.conductor.wait_for(
        lambda: any(command.vnet in facts.bridges for beat in beats for facts in beat.facts)
    )
    # Neither a repeat nor anybody else's network changes it.
    again = dataclasses.replace(command, operation_id=next(_numbers))
    assert worker.run(again).mtu == 1400
    other = a_make(vni=VNI + 1, vnet=command.vnet)
    same_vni = a_make()
    south = dataclasses.replace(command, cloud="south", operation_id=next(_numbers))
    theirs = dataclasses.replace(a_removal(command), cloud="south")
    for wrong in (other, a_removal(other), same_vni, south, theirs):
        failure = worker.run(wrong).failure
        assert failure is not None
        assert failure.category is Category.PROTECTED, failure
    assert listed(root) == [seen]
    for _ in range(2):
        assert worker.run(a_removal(command)).gone
    assert listed(root) == []


def refusal(worker: Worker, command: MakeVnet) -> tuple[Category, str | None]:
    failure = worker.run(command).failure
    assert failure is not None
    return failure.category, failure.verdict


def test_a_vni_that_others_have_is_refused_for_another_one(
    simulator: RunningSimulator, worker: Worker, root: Any
) -> None:
    """In whatever zone with VNIs of the cluster; a VLAN's tag is another number."""
    grant_all(simulator)
    root.cluster.sdn.zones.post(zone="others", type="vxlan", peers="10.0.0.1")
    root.cluster.sdn.zones.post(zone="vlans", type="vlan", bridge="vmbr0")
    root.cluster.sdn.vnets.post(vnet="blue", zone="others", tag=VNI)
    root.cluster.sdn.vnets.post(vnet="red", zone="vlans", tag=77)
    node = root.cluster.sdn.put().split(":")[1]
    eventually(lambda: not root.nodes(node).tasks.get(source="active"))
    theirs = listed(root)
    assert refusal(worker, a_make()) == (Category.PROTECTED, Verdict.OTHER_VNI)
    assert listed(root) == theirs
    # It is passed over before anybody asks for it again.
    beats = worker.conductor.heartbeats
    worker.conductor.wait_for(
        lambda: any(one.vnet == "blue" for x in beats for each in x.clusters for one in each.vnets)
    )
    assert worker.run(a_make(vni=77)).failure is None


@pytest.mark.parametrize("same", ["tag", "vnet"])
def test_two_clouds_choose_the_same_at_once(
    simulator: RunningSimulator,
    worker: Worker,
    root: Any,
    same: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other cloud's vnet comes between the look and the create."""
    grant_all(simulator)
    command = a_make()
    theirs = {"vnet": "mnabcdef", "tag": VNI + 1, "zone": ZONE}
    theirs |= {"alias": f"{ids.new_uuid()} south", same: {"tag": VNI, "vnet": command.vnet}[same]}
    alone = sdn_vnets._Vnet.require_alone

    def late(self: Any) -> None:
        alone(self)
        if not listed(root):
            root.cluster.sdn.vnets.post(**theirs)

    monkeypatch.setattr(sdn_vnets._Vnet, "require_alone", late)
    verdict = Verdict.OTHER_VNI if same == "tag" else None
    assert refusal(worker, command) == (Category.PROTECTED, verdict)
    assert [one["vnet"] for one in listed(root)] == [theirs["vnet"]]


@pytest.mark.parametrize(
    "hide",
    [
        lambda rights, who: rights("/sdn/zones/theirs", "UseOnly", who),
        lambda rights, who: rights("/sdn", "PVESDNUser", who),
    ],
    ids=["a zone", "all"],
)
def test_nothing_is_applied_by_a_token_that_does_not_see_all(
    simulator: RunningSimulator, worker: Worker, root: Any, hide: Callable[..., None]
) -> None:
    grant_all(simulator)
    rights, token = Root(simulator), token_of(simulator)

    def put(path: str, role: str, who: dict[str, str]) -> None:
        rights.ask("PUT", "access/acl", path=path, roles=role, **who)

    rights.ask("POST", "access/roles", roleid="UseOnly", privs="SDN.Use")
    root.cluster.sdn.zones.post(zone="theirs", type="simple")
    for who in ({"users": token.user}, {"tokens": token.id}):
        hide(put, who)
    failure = worker.run(a_make()).failure
    assert failure is not None
    assert failure.category in {Category.AUTHORIZATION, Category.LOCK}
    waiting = [one["zone"] for one in root.cluster.sdn.zones.get(pending=1) if "state" in one]
    assert waiting == ["theirs"]
    assert listed(root) == []


def test_what_others_have_not_applied_is_applied_first(
    simulator: RunningSimulator, worker: Worker, root: Any, shell: RootShell
) -> None:
    grant_all(simulator)
    root.cluster.sdn.zones.post(zone="theirs", type="simple")
    command = a_make()
    failure = worker.run(command).failure
    assert failure is not None
    assert (failure.category, failure.remedy) == (
        Category.LOCK,
        "as root on a node of the cluster: pvesh set /cluster/sdn",
    )
    shell.run(failure.remedy)
    again = dataclasses.replace(command, operation_id=next(_numbers))
    assert worker.run(again).failure is None
    # As an audit prints it, of a network that its cloud never had.
    shell.run(f"pvesh delete /cluster/sdn/vnets/{command.vnet} && pvesh set /cluster/sdn")
    assert listed(root) == []


def refused_vnets(conf: cfg.ConfigOpts) -> list[Any]:
    """What a start refuses about vnets."""
    return [
        one
        for checked in preflight.check(conf)
        for one in checked.refused
        if "vnets" in one.problem
    ]


def test_the_lines_that_the_doctor_prints_are_enough(
    simulator: RunningSimulator, worker: Worker, root: Any, tmp_path: Path
) -> None:
    rights = Root(simulator)
    rights.ask("POST", "access/users", userid="zoned@pve")
    made = rights.ask("POST", "access/users/zoned@pve/token/agent", privsep=1)
    token = tmp_path / "token"
    token.write_text(f"zoned@pve!agent={made['value']}")
    token.chmod(0o600)
    text = proxmox_text(simulator, token_file=str(token))
    for line in privileges.all_grant_lines(Token("zoned@pve", "agent", "")):
        rights.run(line)
    conf = configuration(tmp_path, text)
    assert refused_vnets(conf) == []
    conf.set_override("tenant_vnets", [f"*:{ZONE}:5000-5001"], group="networks")
    refused = refused_vnets(conf)
    assert refused
    for one in refused:
        for line in one.remedy:
            rights.run(line)
    assert refused_vnets(conf) == []
    zoned = Worker(configuration(tmp_path, text))
    zoned.start()
    try:
        command = a_make()
        assert zoned.run(command).failure is None
        assert zoned.run(a_removal(command)).gone
    finally:
        zoned.stop()
