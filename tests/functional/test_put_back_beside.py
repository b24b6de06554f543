"""One database is put back alone, or a backup beside another cloud: nothing is lost by it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.functional import programs
from tests.functional.audits import Audits
from tests.functional.cloud import EmbeddedCloud, embedded_cloud
from tests.functional.test_restored_record import micronova, servers
from tests.functional.test_two_clouds import BAND, addresses, cluster
from tests.functional.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(2400)]


def copied(state: Path, folder: Path, name: str) -> None:
    """Copy a SQLite database of a cloud that is stopped, or put such a copy back."""
    for file in folder.glob(f"{name}*"):
        file.unlink()
    for file in state.glob(f"{name}*"):
        shutil.copy(file, folder)


def claims(cloud: EmbeddedCloud, *wanted: Any) -> list[bool]:
    """Whether placement has a claim of each server."""
    placement = cloud.connection("micronova-admin").placement
    return [bool(placement.get(f"/allocations/{one.id}").json()["allocations"]) for one in wanted]


def test_placement_and_keystone_alone(tmp_path: Path) -> None:
    state, older, newer = (tmp_path / name for name in ("state", "older", "newer"))
    older.mkdir()
    newer.mkdir()
    with cluster(tmp_path / "pve") as (_, options):
        with embedded_cloud(state, **options) as cloud:
            [first, gone] = servers(cloud, "first", "gone")
            cloud.stop()
        copied(state, older, "placement.sqlite")
        copied(state / "keystone", older, "keystone.db")
        with embedded_cloud(state, **options) as cloud:
            [second] = servers(cloud, "second")
            cloud.connection().compute.delete_server(gone)
            cloud.connection().compute.wait_for_delete(gone, wait=120)
            made = cloud.connection("micronova-admin").identity.create_project(name="since")
            cloud.stop()
        # It doesn't know the second one, and has a claim of the deleted one.
        copied(older, state, "placement.sqlite")
        with embedded_cloud(state, audited=False, **options) as cloud:
            Audits(cloud).run()
            eventually(lambda: claims(cloud, first, second, gone) == [True, True, False], 60)
            assert Audits(cloud).run()["open"] == {}
            cloud.stop()
        # Keystone has lost a project; all else is there.
        copied(older, state / "keystone", "keystone.db")
        with embedded_cloud(state, audited=False, **options) as cloud:
            assert cloud.connection("micronova-admin").identity.find_project(made.id) is None
            compute = cloud.connection().compute
            assert {compute.get_server(one.id).status for one in (first, second)} == {"ACTIVE"}
            assert Audits(cloud).run()["open"] == {}


def test_beside_another_cloud_and_twice(tmp_path: Path) -> None:
    north, south, saved = (tmp_path / name for name in ("north", "south", "saved"))
    environment = {"PATH": os.environ["PATH"]}
    with cluster(tmp_path / "pve-north") as (_, options):
        with embedded_cloud(north, **options) as cloud:
            [mine] = servers(cloud, "mine")
            had = addresses(mine)
            micronova(cloud, "backup", "--state-dir", str(north), str(saved))
            cloud.stop()
        words = ["restore", "--state-dir", str(north), "--from", str(saved), "--apply"]
        for _ in range(2):
            # A second time it is the same.
            done = programs.run("micronova", words, environment)
            assert done.returncode == 0, done.stdout + done.stderr
        with embedded_cloud(north, audited=False, **options) as cloud:
            assert "Released" in micronova(cloud, "restore", "--apply")
            assert "lost" not in micronova(cloud, "restore")
            assert addresses(cloud.connection().compute.get_server(mine.id)) == had
            cloud.stop()
    with cluster(tmp_path / "pve-south") as (simulator, options):
        with embedded_cloud(south, **options) as cloud:
            [theirs] = servers(cloud, "theirs")
            cloud.stop()
        # The databases of the north, and the Proxmox VE of the south.
        words = ["restore", "--state-dir", str(south), "--from", str(saved), "--apply"]
        done = programs.run("micronova", words, environment)
        assert done.returncode == 1
        assert "another cloud" in done.stdout + done.stderr
        had_vms = set(simulator.cluster().vms)
        shutil.rmtree(south)
        shutil.copytree(north, south)
        with embedded_cloud(south, audited=False, **options) as cloud:
            said = micronova(cloud, "restore", "--apply", code=2)
            assert "none of this cloud" in said
            assert "Released" not in said
            assert set(simulator.cluster().vms) == had_vms
            assert theirs.id in str(simulator.cluster().vms)


def test_one_of_two_clouds_on_a_cluster(tmp_path: Path) -> None:
    """The other one's servers are neither adopted nor missed, and it doesn't notice anything."""
    north, saved = tmp_path / "north", tmp_path / "saved"
    south = {"set": list(BAND)}
    with (
        cluster(tmp_path / "pve") as (_, options),
        embedded_cloud(tmp_path / "south", **options, **south) as other,
    ):
        theirs = servers(other, "before")
        with embedded_cloud(north, **options) as cloud:
            old = servers(cloud, "old")
            micronova(cloud, "backup", "--state-dir", str(north), str(saved))
            since = servers(cloud, "since")
            theirs += servers(other, "since")
            cloud.stop()
        words = ["restore", "--state-dir", str(north), "--from", str(saved), "--apply"]
        done = programs.run("micronova", words, {"PATH": os.environ["PATH"]})
        assert done.returncode == 0, done.stdout + done.stderr
        with embedded_cloud(north, audited=False, **options) as cloud:
            eventually(lambda: "record_restored" in micronova(cloud, "audit", code=1), 60)
            said = micronova(cloud, "restore", "--apply")
            assert f"adopt: server {since[0].id}" in said
            assert not [one.id for one in (*old, *theirs) if one.id in said]
            compute = cloud.connection().compute
            eventually(lambda: compute.get_server(since[0].id).status == "ACTIVE", 60)
            since += servers(cloud, "after")
            everybody = [ip for one in (*old, *since, *theirs) for ip in addresses(one)]
            assert len(set(everybody)) == len(everybody)
            assert Audits(cloud).run()["open"] == {}
            cloud.stop()
        compute = other.connection().compute
        assert {compute.get_server(one.id).status for one in theirs} == {"ACTIVE"}
        assert Audits(other).run()["open"] == {}
        assert "lost:" not in micronova(other, "restore")
