"""An unmodified Heat makes, changes, scales, suspends and deletes stacks; nothing is left of them.

`tox -e heat` installs it in an environment beside, and runs it as docs/heat.md says.
MICRONOVA_TEST_HEAT is the program `python` of that environment.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.compat.heat.heat import PYTHON, Heat, running_heat
from tests.compat.horizon.horizon import refusals
from tests.fixtures import heat_page
from tests.functional.cloud import EmbeddedCloud, embedded_cloud, eventually

pytestmark = [
    pytest.mark.timeout(2400),
    pytest.mark.skipif(not PYTHON.exists(), reason="Heat is not installed"),
]

HERE = Path(__file__).parent
WAIT_SECONDS = 180
REFUSED = (
    # names that aren't IDs, and whether a thing is deleted
    'status="404"',
    # consoles of kinds that there are not
    'route="/v2.1/servers/{server_id}/remote-consoles",status="400"',
)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCloud]:
    with embedded_cloud(tmp_path_factory.mktemp("cloud"), speed=50) as running:
        yield running


@pytest.fixture(scope="module")
def heat(cloud: EmbeddedCloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Heat]:
    with running_heat(cloud, tmp_path_factory.mktemp("heat")) as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_is_left(cloud: EmbeddedCloud, heat: Heat) -> Iterator[None]:
    """Each test deletes its stacks; the cloud has what it had, and refused what is known."""
    before = belongings(cloud)
    yield
    with contextlib.suppress(AssertionError):  # the comparison below says what is left
        eventually(lambda: belongings(cloud) == before, 60, 2)
    assert belongings(cloud) == before
    unknown = [one for one in refusals(cloud) if not any(known in one for known in REFUSED)]
    assert unknown == []


def belongings(cloud: EmbeddedCloud) -> dict[str, Any]:
    """What Heat makes: the project's, the simulated clusters' and Keystone's part of it."""
    mine, admin = cloud.connection(), cloud.connection("micronova-admin").identity
    compute, network, volume = mine.compute, mine.network, mine.block_storage
    domain = admin.find_domain("heat").id
    lists = {
        "stacks": mine.orchestration.stacks(),
        "servers": compute.servers(),
        "keys": compute.keypairs(),
        "server groups": compute.server_groups(),
        "images": mine.image.images(),
        "ports": network.ports(),
        "networks": network.networks(),
        "security groups": network.security_groups(),
        "volumes": volume.volumes(),
        "volume snapshots": volume.snapshots(),
        "volume backups": volume.backups(),
        "users": admin.users(domain_id=domain),
        "projects": admin.projects(domain_id=domain),
    }
    found = {kind: sorted(one.id for one in every) for kind, every in lists.items()}
    absolute = compute.get_limits().absolute
    used = {
        "servers": absolute.instances_used,
        "cores": absolute.total_cores_used,
        "ram": absolute.total_ram_used,
        "volumes": volume.get_limits().absolute.total_volumes_used,
        "gigabytes": volume.get_limits().absolute.total_gigabytes_used,
        "ports": network.get_quota(mine.current_project_id, details=True).ports["used"],
    }
    return {**found, "used": used, "held": cloud.held()}


class Stack:
    """A stack of a template beside this file."""

    def __init__(self, cloud: EmbeddedCloud, heat: Heat, name: str) -> None:
        self.connection, self._heat, self.name = cloud.connection(), heat, name
        self._api = self.connection.orchestration
        self._template = (HERE / f"{name}.yaml").read_text(encoding="utf-8")
        self.parameters: dict[str, Any] = {}
        self._id = self._api.create_stack(name=name, template=self._template).id

    def has(self, status: str) -> Any:
        """Wait until it has this status; fail at another status that ends an action."""

        def look() -> Any:
            found = self._api.get_stack(self._id)
            action, _, state = str(found.status).partition("_")
            ended = state != "IN_PROGRESS" and status.startswith(action)
            return found if ended else None

        found = eventually(look, WAIT_SECONDS, 0.5)
        assert found.status == status, f"{found.status_reason}{self._heat.logs()}"
        return found

    def update(self, **parameters: Any) -> dict[str, Any]:
        """Update it with more parameters to its end; return its outputs."""
        self.parameters |= parameters
        seen = self._api.get_stack(self._id).updated_at
        self._api.update_stack(self._id, template=self._template, parameters=self.parameters)
        eventually(lambda: self._api.get_stack(self._id).updated_at != seen, WAIT_SECONDS)
        self.has("UPDATE_COMPLETE")
        return self.outputs()

    def act(self, action: str, status: str) -> None:
        """Have it suspended, resumed or checked."""
        getattr(self._api, f"{action}_stack")(self._id)
        self.has(status)

    def outputs(self) -> dict[str, Any]:
        """Return its outputs."""
        found = self._api.get_stack(self._id).outputs
        return {one["output_key"]: one["output_value"] for one in found}

    def delete(self) -> None:
        """Delete it, and wait until it is gone."""
        self._api.delete_stack(self._id)
        eventually(self._is_gone, WAIT_SECONDS, 0.5)

    def _is_gone(self) -> bool:
        return self.name not in {one.name for one in self._api.stacks()}


def statuses(connection: Any) -> set[str]:
    return {one.status for one in connection.compute.servers()}


def test_the_page(cloud: EmbeddedCloud, heat: Heat) -> None:
    (heat.folder / "web.yaml").write_text(heat.printed(heat_page.TEMPLATE), encoding="utf-8")
    connection = cloud.connection()

    def servers() -> dict[str, str]:
        found = connection.compute.servers()
        return {one.id: one.flavor.original_name for one in found if one.status == "ACTIVE"}

    heat.run(heat.printed(heat_page.CREATE))
    eventually(lambda: len(servers()) == 3, WAIT_SECONDS, 0.5)
    before = set(servers())
    lines = heat.printed(heat_page.CHANGE).splitlines()
    heat.run(lines[0])
    assert set(servers().values()) == {"m1.medium"}
    assert set(servers()) == before
    for line in lines[1:]:
        heat.run(line)
        assert statuses(connection) <= {"SUSPENDED" if "suspend" in line else "ACTIVE"}


def test_everything_of_a_template(cloud: EmbeddedCloud, heat: Heat) -> None:
    stack = Stack(cloud, heat, "everything")
    stack.has("CREATE_COMPLETE")
    made = stack.outputs()
    server = made["server"]
    assert [one["id"] for one in server["os-extended-volumes:volumes_attached"]] == [
        made["volume"]["id"]
    ]
    assert server["key_name"] == "everything-key"
    assert {one["name"] for one in server["security_groups"]} == {made["group"]["name"], "default"}
    assert made["booted"]["image"] == ""
    renamed = stack.update(name="second", web_port=443, size=2)
    assert (renamed["server"]["id"], renamed["server"]["name"]) == (server["id"], "second")
    assert (renamed["volume"]["id"], renamed["volume"]["size"]) == (made["volume"]["id"], 2)
    assert 443 in {one["port_range_max"] for one in renamed["group"]["security_group_rules"]}
    larger = stack.update(flavor="m1.medium", more_networks=[{"network": "vmbr0"}])["server"]
    assert (larger["id"], larger["flavor"]["original_name"]) == (server["id"], "m1.medium")
    assert len(larger["addresses"]["vmbr0"]) == 2
    rebuilt = stack.update(image="ubuntu-24.04", more_networks=[])["server"]
    assert rebuilt["id"] == server["id"]
    assert rebuilt["image"]["id"] != server["image"]["id"]
    assert len(rebuilt["addresses"]["vmbr0"]) == 1
    stack.act("suspend", "SUSPEND_COMPLETE")
    assert statuses(stack.connection) == {"SUSPENDED"}
    stack.act("resume", "RESUME_COMPLETE")
    assert statuses(stack.connection) == {"ACTIVE"}
    stack.act("check", "CHECK_COMPLETE")
    stack.delete()


def test_a_resource_group(cloud: EmbeddedCloud, heat: Heat) -> None:
    stack = Stack(cloud, heat, "members")

    def handle() -> Any:
        # before the resource is there it is its name
        found = str(stack.outputs().get("handle"))
        return found if found.startswith("http") else None

    url = eventually(handle, WAIT_SECONDS, 0.5)
    done = {"Status": "SUCCESS", "Reason": "configured", "UniqueId": "1", "Data": ""}
    assert requests.put(url, json=done, headers={"Content-Type": ""}, timeout=60).ok
    stack.has("CREATE_COMPLETE")
    assert stack.outputs()["names"] == ["member-0", "member-1"]
    compute = stack.connection.compute
    lost = compute.find_server("member-1", ignore_missing=False)
    compute.delete_server(lost)
    compute.wait_for_delete(lost)
    stack.act("check", "CHECK_FAILED")
    assert stack.update()["names"] == ["member-0", "member-1"]
    assert compute.find_server("member-1", ignore_missing=False).id != lost.id
    grown = stack.update(count=3, flavor="m1.nano")
    assert grown["names"] == ["member-0", "member-1", "member-2"]
    assert grown["flavors"] == ["m1.nano"] * 3
    assert stack.update(count=1)["names"] == ["member-0"]
    stack.delete()


def test_a_snapshot_is_restored(cloud: EmbeddedCloud, heat: Heat) -> None:
    stack = Stack(cloud, heat, "snapshot")
    stack.has("CREATE_COMPLETE")
    heat.run("openstack stack snapshot create snapshot")
    stack.has("SNAPSHOT_COMPLETE")
    kept = "$(openstack stack snapshot list snapshot -f value -c id)"
    heat.run(f"openstack stack snapshot restore snapshot {kept}")
    stack.has("RESTORE_COMPLETE")
    assert statuses(stack.connection) == {"ACTIVE"}
    # the end of a stack leaves the images and backups of snapshots
    heat.run(f"openstack stack snapshot delete --yes snapshot {kept}")
    listed = "openstack stack snapshot list snapshot -f value"
    eventually(lambda: not heat.run(listed).strip(), WAIT_SECONDS, 1)
    stack.delete()
