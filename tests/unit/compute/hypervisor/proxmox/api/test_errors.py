"""The error table against the texts of a real server."""

from __future__ import annotations

from typing import Any

import pytest

from common.messages.reports import Category
from compute.hypervisor.proxmox.api.errors import ApiError, api_error, category_of
from tests.fixtures.pve_records import responses

ANSWERS = dict(responses(1))

#: name of a capture → what it means
MEANINGS = {
    "no-quorum.create": Category.NODE_UNHEALTHY,
    "no-quorum.config-put": Category.NODE_UNHEALTHY,
    "no-quorum.delete.task-status": Category.NODE_UNHEALTHY,
    "err.node-missing.get-config": Category.NODE_UNHEALTHY,
    "cluster2.migrate.target-missing": Category.NODE_UNHEALTHY,
    "node2-dead.get-status": Category.NODE_UNHEALTHY,
    "node2-proxy-down.start": Category.NODE_UNHEALTHY,
    "pvedaemon-down.start": Category.NODE_UNHEALTHY,
    "err.qemu.start.kvm-unusable.task-status": Category.NODE_UNHEALTHY,
    "pvedaemon-hung.start": Category.UNKNOWN_OUTCOME,
    "interrupted-create.SIGKILL.task-status": Category.UNKNOWN_OUTCOME,
    "lock.create.config-put": Category.LOCK,
    "lock.clone.start.task-status": Category.LOCK,
    "lock.snapshot-delete.start.task-status": Category.LOCK,
    "task.running.second-create-same-vmid": Category.LOCK,
    "err.qemu.config-put.digest-mismatch": Category.LOCK,
    "err.qemu.delete.running": Category.LOCK,
    "err.qemu.delete.template-with-linked-clones.task-status": Category.LOCK,
    "exists.qemu.create.existing-vmid": Category.STORAGE_CONFLICT,
    "exists.qemu.clone.newid-taken": Category.STORAGE_CONFLICT,
    "cluster2.create.vmid-exists-on-other-node": Category.STORAGE_CONFLICT,
    "orphan.create.disk0-and-cloudinit-exist.task-status": Category.STORAGE_CONFLICT,
    "orphan.config-put.cloudinit-exists": Category.STORAGE_CONFLICT,
    "err.storage.content.alloc.exists": Category.STORAGE_CONFLICT,
    "err.qemu.create.disk-larger-than-storage.task-status": Category.STORAGE_FULL,
    "err.qemu.create.import-from.missing-volume.task-status": Category.IMAGE_NOT_FOUND,
    "err.qemu.create.import-from.missing-path.task-status": Category.IMAGE_NOT_FOUND,
    "cluster2.create.import-source-only-on-other-node.task-status": Category.IMAGE_NOT_FOUND,
    "storage.upload.not-really-qcow2.task-status": Category.IMAGE_CORRUPT,
    "err.storage.upload.checksum-mismatch.task-status": Category.IMAGE_CORRUPT,
    "err.qemu.start.bridge-missing.task-status": Category.NETWORK,
    "perm.plus-datastoreuser.create.net": Category.NETWORK,
    "perm.no-acl.privsep.qemu-clone": Category.AUTHORIZATION,
    "perm.no-acl.privsep.qemu-create": Category.AUTHORIZATION,
    "perm.plus-datastoreuser.create.args-root-only": Category.AUTHORIZATION,
    "perm.plus-datastoreuser.create.import-from.abs-path.non-root": Category.AUTHORIZATION,
    "lock.create.start.skiplock.token-of-root": Category.AUTHORIZATION,
    "auth.token.wrong-secret": Category.AUTHORIZATION,
    "auth.no-credentials.get": Category.AUTHORIZATION,
    "err.qemu.importdisk.post": Category.API_NOT_SUPPORTED,
    "err.path-unknown.post": Category.API_NOT_SUPPORTED,
    "err.qemu.clone.linked-of-non-template": Category.API_NOT_SUPPORTED,
    "err.qemu.create.bad-params": Category.CONFIGURATION,
    "err.qemu.create.storage-missing": Category.CONFIGURATION,
    "err.qemu.clone.linked-with-storage": Category.CONFIGURATION,
    "cluster2.clone.target-other-node.local-storage": Category.CONFIGURATION,
    "err.qemu.delete.protected": Category.PROTECTED,
    "err.qemu.shutdown.no-acpi-guest.task-status": Category.TASK_TIMEOUT,
    "err.qemu.resize.shrink.task-status": Category.CREATION_FAILED,
}


def error_of(name: str) -> ApiError:
    """As the driver meets it: proxmoxer passes status, reason phrase and the map of errors."""
    found = ANSWERS[name]
    body = found["body"] if isinstance(found["body"], dict) else {}
    if found["status"] == 200:
        text = body["data"]["exitstatus"]
        return ApiError(category_of(text), text)
    return api_error(found["status"], found["reason"], body.get("errors"))


@pytest.mark.parametrize("name", MEANINGS)
def test_real_answers_mean(name: str) -> None:
    assert error_of(name).category is MEANINGS[name]


def test_a_missing_config_is_distinguished_from_other_errors() -> None:
    assert error_of("err.qemu.config.missing-vm").no_config
    assert error_of("cluster2.config.vm-lives-on-other-node").no_config
    assert error_of("err.qemu.stop.missing-vm.task-status").no_config
    assert not error_of("err.storage-missing.content").no_config
    assert not error_of("err.node-missing.get-config").no_config


def test_a_taken_id_is_reported() -> None:
    assert error_of("exists.qemu.create.existing-vmid").id_taken
    assert error_of("exists.qemu.clone.newid-taken").id_taken
    assert error_of("task.running.second-create-same-vmid").id_taken
    assert not error_of("orphan.config-put.cloudinit-exists").id_taken


def test_a_missing_task_is_reported() -> None:
    assert error_of("err.task.status.unknown-upid").no_task


@pytest.mark.parametrize(
    ("text", "status", "category"),
    [
        ("", 500, Category.UNKNOWN_OUTCOME),
        ("something new", 500, Category.CREATION_FAILED),
        ("", 599, Category.UNKNOWN_OUTCOME),
        ("got no worker upid - start worker failed", 500, Category.UNKNOWN_OUTCOME),
        ("cfs-lock 'storage-ceph' error: got lock request timeout", 500, Category.LOCK),
        ("'storage-nfs'-locked command timed out - aborting", 500, Category.UNKNOWN_OUTCOME),
        ("zfs error: cannot create 'x': dataset already exists", 500, Category.STORAGE_CONFLICT),
        ("lvcreate: No space left on device", 500, Category.STORAGE_FULL),
        ("insufficient free space", 500, Category.STORAGE_FULL),
        ("restore failed - blk_pwrite to  failed (-5)", 500, Category.CREATION_FAILED),
    ],
)
def test_answers_known_from_the_sources_only(text: str, status: int, category: Category) -> None:
    assert category_of(text, status) is category


def test_a_message_carries_status_text_and_parameters() -> None:
    error = api_error(400, "Parameter verification failed.", {"vmid": "too small"})
    assert "400" in error.message
    assert "too small" in error.message


@pytest.mark.parametrize("errors", [{"errors": b""}, {"errors": b"<html>"}, {}, None])
def test_a_body_that_is_no_map_is_no_part_of_the_message(errors: Any) -> None:
    error = api_error(401, "Authentication failed!", errors)
    assert error.message == "Proxmox VE answered 401: Authentication failed!"


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("failed to stat '/var/lib/vz/template/iso/x.iso'", True),
        ("volume_size_info on 'local:1/vm-1-disk-0.raw' failed - no format", True),
        ("volume_size_info on 'thin:vm-900-nope' failed - no size", True),
        ("zfs error: cannot open 'rpool/data/vm-1-disk-0': dataset does not exist", True),
        (
            "rbd error: rbd: error opening image vm-1-disk-0: (2) No such file or directory",
            True,
        ),
        (
            "can't get size of '/dev/pve/vm-1-disk-0':   Failed to find logical volume "
            '"pve/vm-1-disk-0"',
            True,
        ),
        # Of these it isn't known whether the volume is there.
        ("zfs error: cannot open 'rpool': no such pool", False),
        ("rbd error: rbd: couldn't connect to the cluster!", False),
        ("can't get size of '/dev/pve/vm-1-disk-0':   Volume group \"pve\" not found", False),
        ("zfs error: got timeout", False),
        ("storage 'data' is not online", False),
    ],
)
def test_each_type_of_storage_says_otherwise_that_a_volume_is_missing(
    text: str, missing: bool
) -> None:
    assert api_error(500, text).no_volume == missing


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("storage 'fast' does not exist", True),
        ("storage 'fast' is not online", False),
        ("storage 'fast' is disabled", False),
        ("storage 'fast' is not available on node 'pve1'", False),
        ("volume 'fast:1/vm-1-disk-0.qcow2' does not exist", False),
    ],
)
def test_only_a_storage_that_is_not_configured_does_not_exist(text: str, unknown: bool) -> None:
    assert api_error(500, text).no_storage == unknown
    assert not api_error(595, text).no_storage


def test_which_disk_was_not_freed() -> None:
    text = "unable to delete 'local:1/vm-1-disk-0.qcow2' - volume is still in use (snapshot?)"
    refused = api_error(400, "Parameter verification failed.", {"scsi30": f"hotplug - {text}\n"})
    assert api_error(500, text).in_use == refused.in_use == "local:1/vm-1-disk-0.qcow2"
    assert api_error(500, "unable to delete it").in_use is None
