"""A record restored from a backup: what was made since runs on, and nobody gets its addresses."""

from __future__ import annotations

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
            assert {one["kind"] for one in found} == {"vm_record_lost", "holder_without_volume"}
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
