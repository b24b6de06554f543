"""The audit on a running cloud: every kind of leak is planted, seen, and healed or left alone."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from common import clock
from tests.functional.audit.leaks import (
    CLUSTER,
    Proxmox,
    a_server,
    a_stranger,
    database,
    delete,
    marks,
    micronova,
    takes_servers,
)
from tests.functional.audits import Audits
from tests.functional.cloud import EmbeddedCloud, embedded_cloud
from tests.functional.dashboard.browser import Browser
from tests.functional.waiting import eventually


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCloud]:
    state_dir = tmp_path_factory.mktemp("audit")
    options: dict[str, Any] = {"driver": "proxmox", "nodes": 2, "speed": 100}
    with embedded_cloud(state_dir, audited=False, **options) as running:
        yield running


@pytest.fixture
def audits(cloud: EmbeddedCloud) -> Iterator[Audits]:
    """The audit; a test ends with a clean one."""
    found = Audits(cloud)
    yield found
    found.assert_clean()


@pytest.fixture
def pve(cloud: EmbeddedCloud) -> Proxmox:
    return Proxmox(cloud)


def test_a_cloud_that_works_is_clean(cloud: EmbeddedCloud, audits: Audits) -> None:
    server = a_server(cloud, "clean")
    report = audits.run()
    assert report["clean"]
    assert report["complete"]
    assert report["looked_at"]["servers"] == report["looked_at"]["allocations"] == 1
    delete(cloud, server["uuid"])


def test_a_vm_of_a_deleted_server_goes(cloud: EmbeddedCloud, audits: Audits, pve: Proxmox) -> None:
    server = a_server(cloud, "deleted")
    delete(cloud, server["uuid"])
    # As a build that was late, of an agent that nobody waited for, would leave it.
    pve.make_vm(server["vmid"], server["node"], name="late", **marks(server["uuid"], cloud))
    assert audits.run()["healed"] == 1
    assert pve.vm(server["vmid"]) is None
    assert pve.volumes(server["vmid"]) == []
    [healed] = audits.healed("vm_of_deleted_server")
    assert healed["healed_by"] == "destroy"
    assert healed["server_uuid"] == server["uuid"]
    code, story, _ = micronova(cloud, "explain", server["uuid"])
    assert code == 0
    assert "reap  done" in story


def test_a_running_vm_is_reaped_in_the_dashboard(
    cloud: EmbeddedCloud, audits: Audits, pve: Proxmox
) -> None:
    server = a_server(cloud, "reaped")
    delete(cloud, server["uuid"])
    pve.make_vm(server["vmid"], server["node"], name="late", **marks(server["uuid"], cloud))
    pve.call("POST", f"nodes/{server['node']}/qemu/{server['vmid']}/status/start")
    # The audit's own try fails.
    refusal = {"action": "fail", "status": 403, "text": "Permission check failed", "times": 0}
    cloud.control("POST", "faults", **refusal, path="/status/(stop|shutdown)$")
    assert audits.run()["open"] == {"vm_of_deleted_server": 1}
    cloud.control("DELETE", "faults")
    [found] = audits.open()
    admin = Browser(cloud)
    admin.log_in("admin")
    path = f"/audit/{found['id']}"
    assert f"/dashboard{path}" in admin.get("/audit?show=orphans").links
    assert f"/dashboard{path}/heal" in admin.get(path).links
    text = admin.get(f"{path}/heal").text
    assert f"Reap sim1/{server['vmid']}?" in text
    assert "can't be restored" in text
    assert "It is running: remove it all the same" in text
    text = admin.submit(f"{path}/heal").text
    assert "Refused: The VM is not stopped; only force removes it." in text
    assert pve.vm(server["vmid"]) is not None
    admin.get(f"{path}/heal")
    text = admin.submit(f"{path}/heal", force="true").text
    assert "removes it. The next audit says whether it is gone." in text
    eventually(lambda: pve.vm(server["vmid"]) is None)
    audits.assert_clean()
    assert "Gone since" in admin.get(path).text
    admin.get(f"{path}/heal")
    assert not admin.has_form(f"{path}/heal")


def test_a_template_that_no_record_names_goes(
    cloud: EmbeddedCloud, audits: Audits, pve: Proxmox
) -> None:
    server = a_server(cloud, "template")
    with database(cloud) as connection:
        rows = connection.execute("SELECT vmid FROM templates").fetchall()
        [vmid] = [one[0] for one in rows if pve.vm(one[0])["node"] == server["node"]]
        connection.execute("DELETE FROM templates WHERE vmid = ?", (vmid,))
        connection.execute("DELETE FROM vmids WHERE vmid = ?", (vmid,))
    # A clone hangs on it: the agent leaves it alone.
    assert audits.run()["open"] == {"template_without_record": 1}
    delete(cloud, server["uuid"])
    audits.assert_clean()
    assert pve.vm(vmid) is None


def test_a_foreign_vm_stays(cloud: EmbeddedCloud, audits: Audits, pve: Proxmox) -> None:
    server = a_server(cloud, "copied")
    other = {"description": f"micronova: server={server['uuid']}", "tags": "micronova"}
    # The tag and the description are copied, as a clone by hand would have them.
    pve.make_vm(150_001, "pve1", name="copy", smbios1=f"uuid={uuid.uuid4()}", **other)
    pve.make_vm(150_002, "pve1", name="by-hand", tags="micronova")
    pve.make_vm(150_003, "pve1", name="other-cloud", **marks(a_stranger(), None))
    report = audits.run()
    assert report["open"] == {"band_shared": 1, "vm_foreign": 2}
    code, out, _ = micronova(cloud, "orphan", "reap", "--yes", "--force")
    assert (code, out) == (0, "")
    [stranger] = audits.open("band_shared")
    answer = audits.compute.post(
        f"/audit/findings/{stranger['id']}/action", json={"heal": {"force": True}}
    )
    assert answer.status_code == 409
    for vmid in (150_001, 150_002, 150_003):
        assert pve.vm(vmid) is not None
        pve.call("DELETE", f"nodes/pve1/qemu/{vmid}")
    delete(cloud, server["uuid"])


def test_exit_codes(cloud: EmbeddedCloud, audits: Audits, pve: Proxmox) -> None:
    assert micronova(cloud, "audit")[0] == 0
    pve.make_vm(150_004, "pve1", name="by-hand")
    code, out, summary = micronova(cloud, "audit", "-f", "json")
    assert code == 1, summary
    [finding] = json.loads(out)
    assert finding["Kind"] == "vm_foreign"
    assert finding["Subject"] == f"{CLUSTER}/150004"
    assert "1 difference left" in summary
    pve.call("DELETE", "nodes/pve1/qemu/150004")
    cloud.control("POST", "faults", action="node-down", node="pve2")
    try:
        code, _, summary = micronova(cloud, "audit")
        assert code == 2
        assert "Not seen: Cluster sim1: Node pve2 is offline." in summary
    finally:
        cloud.control("DELETE", "faults")
        # The nodes may have been seen without quorum.
        eventually(lambda: takes_servers(cloud) == 2)


def test_a_config_drive_that_was_left_goes(
    cloud: EmbeddedCloud, audits: Audits, pve: Proxmox
) -> None:
    server = a_server(cloud, "drive")
    delete(cloud, server["uuid"])
    volid = f"local:iso/micronova-{server['vmid']}-{server['uuid']}.iso"
    foreign = f"local:iso/micronova-{server['vmid']}-{a_stranger()}.iso"
    for one in (volid, foreign):
        cloud.control("POST", "volume", volid=one, node=server["node"])
    report = audits.run()
    assert report["open"] == {"volume_foreign": 1}
    assert pve.volumes(server["vmid"]) == [foreign]
    assert audits.open()[0]["heal"] is None
    pve.call("DELETE", f"nodes/{server['node']}/storage/local/content/{foreign}")


def test_a_stray_volume_is_reported_and_not_touched(
    cloud: EmbeddedCloud, audits: Audits, pve: Proxmox
) -> None:
    cloud.control("POST", "volume", volid="local:150005/vm-150005-disk-0.qcow2", node="pve1")
    report = audits.run()
    assert report["open"] == {"volume_foreign": 1}
    [finding] = audits.open()
    assert finding["heal"] is None
    assert finding["remedy"].startswith("It is not this cloud's, and never touched")
    assert pve.volumes(150_005)
    pve.call("DELETE", "nodes/pve1/storage/local/content/local:150005/vm-150005-disk-0.qcow2")


def test_a_copy_that_a_move_left_is_reported_and_a_drive_goes(
    cloud: EmbeddedCloud, audits: Audits, pve: Proxmox
) -> None:
    server = a_server(cloud, "left")
    vmid, [other] = server["vmid"], {"pve1", "pve2"} - {server["node"]}
    disk = f"local:{vmid}/vm-{vmid}-disk-7.qcow2"
    drive = f"local:iso/micronova-{vmid}-{server['uuid']}.iso"
    own = pve.volumes(vmid)
    inserted = pve.vm(vmid)["config"]["ide2"]
    for volid in (disk, drive):
        cloud.control("POST", "volume", volid=volid, node=other)
    report = audits.run()
    assert (report["open"], report["healed"]) == ({"volume_left_behind": 1}, 1)
    # The VM's own drive, whose file has the same name, remains in it.
    assert sorted(pve.volumes(vmid)) == sorted([*own, disk])
    assert pve.vm(vmid)["config"]["ide2"] == inserted
    [finding] = audits.open()
    assert (finding["server_uuid"], finding["heal"]) == (server["uuid"], None)
    assert finding["remedy"].endswith(f"as root on {other}: pvesm free {disk}")
    pve.call("DELETE", f"nodes/{other}/storage/local/content/{disk}")
    audits.assert_clean()
    delete(cloud, server["uuid"])


def test_what_a_delete_by_hand_left_goes_with_the_server(
    cloud: EmbeddedCloud, audits: Audits, pve: Proxmox
) -> None:
    server = a_server(cloud, "by-hand")
    vmid, path = server["vmid"], f"nodes/{server['node']}/qemu/{server['vmid']}"
    pve.call("POST", f"{path}/status/stop")
    # The disk can't be removed: only a warning, and the configuration is deleted all the same.
    cloud.control("POST", "faults", leak="L7", vmid=vmid)
    pve.call("DELETE", path)
    assert pve.vm(vmid) is None
    assert len(pve.volumes(vmid)) == 2
    # The journal and the clone's own task prove the disk ours.
    delete(cloud, server["uuid"])
    assert pve.volumes(vmid) == []


def test_allocations_follow_the_record(cloud: EmbeddedCloud, audits: Audits) -> None:
    late, lost, wrong = (a_server(cloud, name) for name in ("late", "lost", "wrong"))
    placement = cloud.connection("micronova-admin").placement
    version = {"headers": {"OpenStack-API-Version": "placement 1.36"}}

    def allocations(uuid: str) -> Any:
        return placement.get(f"/allocations/{uuid}", **version).json()

    def put(uuid: str, held: Any, generation: int | None) -> None:
        body = {**held, "consumer_generation": generation}
        answer = placement.put(f"/allocations/{uuid}", json=body, **version)
        assert answer.status_code == 204, answer.text

    claim = allocations(late["uuid"])
    del claim["consumer_generation"]
    delete(cloud, late["uuid"])
    # A claim that was on the wire when who had asked for it was gone.
    put(late["uuid"], claim, None)
    placement.delete(f"/allocations/{lost['uuid']}", **version)
    held = allocations(wrong["uuid"])
    [provider] = held["allocations"]
    held["allocations"][provider] = {"resources": {"VCPU": 3}}
    put(wrong["uuid"], held, held["consumer_generation"])
    stranger = a_stranger()
    put(stranger, claim, None)

    report = audits.run()
    assert report["open"] == {"allocation_unknown": 1}
    assert report["healed"] == 3
    assert allocations(late["uuid"])["allocations"] == {}
    for server in (lost, wrong):
        [one] = allocations(server["uuid"])["allocations"].values()
        assert one["resources"]["VCPU"] == server["vcpus"]
        assert one["resources"]["MEMORY_MB"] == server["memory_mib"]
    assert allocations(stranger)["allocations"]
    placement.delete(f"/allocations/{stranger}", **version)
    for server in (lost, wrong):
        delete(cloud, server["uuid"])


def test_ports_vmids_and_states_are_put_right(cloud: EmbeddedCloud, audits: Audits) -> None:
    server = a_server(cloud, "records")
    gone = a_server(cloud, "gone")
    delete(cloud, gone["uuid"])
    now = clock.utcnow().replace(tzinfo=None).isoformat(" ")
    with database(cloud) as connection:
        network = connection.execute("SELECT network_id, subnet_id FROM ports").fetchone()
        connection.execute(
            "INSERT INTO ports (id, network_id, subnet_id, server_uuid, project_id, position, "
            "mac, ip, created_at) VALUES (?, ?, ?, ?, 'p', 0, 'fa:16:3e:ff:ff:ff', "
            "'10.20.99.99', ?)",
            (str(uuid.uuid4()), *network, gone["uuid"], now),
        )
        connection.execute(
            "INSERT INTO vmids (cluster, vmid, state, server_uuid, since) "
            "VALUES (?, 150006, 'reserved', ?, ?)",
            (CLUSTER, gone["uuid"], now),
        )
        connection.execute("DELETE FROM vmids WHERE vmid = ?", (server["vmid"],))
        connection.execute(
            "UPDATE servers SET task_state = 'powering-off' WHERE uuid = ?", (server["uuid"],)
        )
    report = audits.run()
    assert report["clean"]
    assert report["healed"] == 4
    with database(cloud) as connection:
        kept = connection.execute("SELECT vmid, server_uuid FROM vmids WHERE server_uuid > ''")
        assert [tuple(one) for one in kept] == [(server["vmid"], server["uuid"])]
        ports = connection.execute("SELECT server_uuid FROM ports").fetchall()
        assert [one[0] for one in ports] == [server["uuid"]]
        state = connection.execute(
            "SELECT vm_state, task_state FROM servers WHERE uuid = ?", (server["uuid"],)
        ).fetchone()
        assert tuple(state) == ("error", None)
    delete(cloud, server["uuid"])


def test_what_a_person_did_to_a_server_is_reported(
    cloud: EmbeddedCloud, audits: Audits, pve: Proxmox
) -> None:
    server = a_server(cloud, "touched")
    compute = cloud.connection().compute
    compute.stop_server(server["uuid"])
    compute.wait_for_server(compute.get_server(server["uuid"]), status="SHUTOFF", wait=60)
    path = f"nodes/{server['node']}/qemu/{server['vmid']}"
    pve.call("PUT", f"{path}/config", cores=4)
    cloud.control("POST", "clock", statistics=True)
    report = audits.run()
    assert report["open"] == {"quota_mismatch": 1}
    assert "4 CPUs, by the record 1" in audits.open()[0]["cause"]
    pve.call("PUT", f"{path}/config", cores=1)
    cloud.control("POST", "clock", statistics=True)
    assert audits.run()["clean"]
    delete(cloud, server["uuid"])


def test_only_administrators_see_it(cloud: EmbeddedCloud) -> None:
    compute = cloud.connection().compute
    assert compute.get("/audit/findings").status_code == 403
    assert compute.post("/audits").status_code == 403
