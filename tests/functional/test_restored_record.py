"""A record restored from a backup: what was made since runs on, and nobody gets its addresses."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.functional import programs
from tests.functional.audits import Audits
from tests.functional.cloud import EmbeddedCloud, embedded_cloud
from tests.functional.test_two_clouds import addresses, cluster
from tests.functional.waiting import eventually

pytestmark = pytest.mark.long


def servers(cloud: EmbeddedCloud, *names: str) -> list[Any]:
    compute = cloud.connection().compute
    flavor = next(iter(compute.flavors()))
    image = cloud.connection().image.find_image("cirros-0.6.3") or next(
        one for one in cloud.connection().image.images() if "cirros" in one.name
    )
    made = [
        compute.create_server(name=name, image_id=image.id, flavor_id=flavor.id, networks="auto")
        for name in names
    ]
    return [compute.wait_for_server(one, wait=120) for one in made]


def test_what_was_made_since_the_backup_keeps_its_addresses(tmp_path: Path) -> None:
    state, saved = tmp_path / "state", tmp_path / "saved"
    with cluster(tmp_path / "pve") as (_, options):
        with embedded_cloud(state, **options) as cloud:
            old = servers(cloud, "old")
            cloud.stop()
        shutil.copytree(state, saved)
        with embedded_cloud(state, **options) as cloud:
            since = servers(cloud, "one", "two", "three")
            storage = cloud.connection().block_storage
            volume = storage.create_volume(name="data", size=2)
            storage.wait_for_status(volume, "available", wait=120)
            cloud.stop()
        shutil.rmtree(state)
        shutil.copytree(saved, state)
        with embedded_cloud(state, audited=False, **options) as cloud:
            # At once, before anybody has looked around.
            after = servers(cloud, "four", "five", "six")
            taken = [ip for one in (*old, *since, *after) for ip in addresses(one)]
            assert len(set(taken)) == len(taken)
            audits = Audits(cloud)
            audits.run()
            found = audits.open()
            assert {one["kind"] for one in found} == {
                *("record_restored", "vm_record_lost", "holder_without_volume")
            }
            assert {one["server_uuid"] for one in found if one["vmid"]} >= {
                one.id for one in since
            }
            [holder] = [one for one in found if one["kind"] == "holder_without_volume"]
            assert "(2.0 GiB), of volume " in holder["remedy"]
            assert f"volume {volume.id}, project {since[0].project_id}" in holder["remedy"]
            assert not any("another cloud" in one["cause"] for one in found)
            # What is advised brings the server back.
            lost = next(one for one in found if one["server_uuid"] == since[0].id)
            words = lost["remedy"].partition(": micronova ")[2]
            environment = cloud.environment("micronova-admin")
            done = programs.run("micronova", shlex.split(words), environment)
            assert done.returncode == 0, done.stdout + done.stderr
            compute = cloud.connection().compute
            eventually(lambda: compute.get_server(since[0].id).status == "ACTIVE", 60)
            assert addresses(compute.get_server(since[0].id)) == addresses(since[0])


def micronova(cloud: EmbeddedCloud, *words: str, code: int = 0) -> str:
    done = programs.run("micronova", list(words), cloud.environment("micronova-admin"))
    assert done.returncode == code, done.stdout + done.stderr
    return str(done.stdout + done.stderr)


def test_a_backup_that_is_put_back_loses_and_destroys_nothing(tmp_path: Path) -> None:
    """As docs/operate.md says, with what the cloud says of it before the decision and after."""
    state, saved = tmp_path / "state", tmp_path / "saved"
    with cluster(tmp_path / "pve") as (_, options):
        with embedded_cloud(state, **options) as cloud:
            [kept, gone] = servers(cloud, "kept", "gone")
            micronova(cloud, "backup", "--state-dir", str(state), str(saved))
            [since] = servers(cloud, "since")
            connection = cloud.connection()
            volume = connection.block_storage.create_volume(name="data", size=2)
            connection.block_storage.wait_for_status(volume, "available", wait=120)
            used = connection.block_storage.create_volume(name="used", size=1)
            connection.block_storage.wait_for_status(used, "available", wait=120)
            connection.compute.create_volume_attachment(since, volume_id=used.id)
            connection.block_storage.wait_for_status(used, "in-use", wait=120)
            connection.compute.delete_server(gone)
            connection.compute.wait_for_delete(gone, wait=120)
            micronova(
                *(cloud, "restore", "--state-dir", str(state), "--from", str(saved), "--apply"),
                code=1,
            )
            cloud.stop()
        environment = {"PATH": os.environ["PATH"]}
        words = ["restore", "--state-dir", str(state), "--from", str(saved), "--apply"]
        done = programs.run("micronova", words, environment)
        assert done.returncode == 0, done.stdout + done.stderr
        with embedded_cloud(state, audited=False, **options) as cloud:
            compute = cloud.connection().compute
            said = micronova(cloud, "doctor", "--state-dir", str(state), code=1)
            assert "record_restored" in said
            assert "The database was put back" in micronova(cloud, "audit", "--long", code=1)
            compute.delete_server(kept)
            eventually(lambda: "put back" in micronova(cloud, "explain", kept.id), 60)
            planned = micronova(cloud, "restore")
            assert f"adopt: server {since.id}" in planned
            assert f"adopt: volume {volume.id}" in planned
            assert f"lost: server {gone.id}" in planned
            assert "Nothing was done" in planned
            applied = micronova(cloud, "restore", "--apply")
            assert "Released" in applied, applied
            assert applied.count("It is adopted.") == 3, applied
            eventually(lambda: compute.get_server(since.id).status == "ACTIVE", 60)
            again = compute.get_server(since.id)
            assert addresses(again) == addresses(since)
            assert (again.project_id, again.user_id) == (since.project_id, since.user_id)
            storage = cloud.connection().block_storage
            assert storage.get_volume(volume.id).status == "available"
            assert storage.get_volume(used.id).status == "in-use"
            [attached] = compute.volume_attachments(since)
            assert attached.volume_id == used.id
            # The delete that was asked for continues.
            compute.wait_for_delete(kept, wait=120)
            compute.delete_volume_attachment(since, used.id)
            storage.wait_for_status(storage.get_volume(used.id), "available", wait=120)
