"""The calls of the Cinder CSI driver's controller, in their order; each of its procedures may be
called again, and then changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.gophercloud import SECONDS, Gone, Gophercloud, Refused
from tests.functional.waiting import eventually

_LISTS = "3.34"
_EXTENDS = "3.42"
_ATTACHES = "2.60"
_CLUSTER = {"cinder.csi.openstack.org/cluster": "kubernetes"}


class Controller:
    """The driver's controller service."""

    def __init__(self, cloud: Gophercloud) -> None:
        self._cloud = cloud
        self.writes: list[str] = []
        """What was asked to change."""

    def create_volume(self, name: str, size: int, zone: str = "", **source: str) -> Any:
        """CreateVolume: idempotent by the name."""
        query = f"volumes/detail?name={name}"
        found = self._cloud.volume("GET", query, version=_LISTS)["volumes"]
        assert len(found) < 2
        if found:
            assert found[0]["size"] == size
            return found[0]
        if "snapshot_id" in source:
            shot = self._cloud.volume("GET", f"snapshots/{source['snapshot_id']}")["snapshot"]
            assert shot["status"] == "available"
        body = {"name": name, "size": size, "metadata": _CLUSTER, **source}
        if zone:
            body["availability_zone"] = zone
        self.writes.append("create")
        made = self._cloud.volume("POST", "volumes", {"volume": body})["volume"]
        return self._cloud.wait(made["id"], ("downloading", "creating"), ("available",))

    def publish(self, node: str, volume: str) -> str:
        """ControllerPublishVolume: attach; returns the path of the device."""
        cloud = self._cloud
        cloud.show(volume)
        cloud.compute("GET", f"servers/{node}")
        attached = cloud.show(volume)["attachments"]
        if not attached:
            path, body = f"servers/{node}/os-volume_attachments", {"volumeId": volume}
            self.writes.append("attach")
            cloud.compute("POST", path, {"volumeAttachment": body}, version=_ATTACHES)
        eventually(lambda: self._has(node, volume), SECONDS, 0.05)
        shown = cloud.wait(volume, ("attaching", "reserved"), ("in-use",))
        (attachment,) = shown["attachments"]
        assert attachment["server_id"] == node
        return str(attachment["device"])

    def unpublish(self, node: str, volume: str) -> None:
        """ControllerUnpublishVolume: detach."""
        self._cloud.compute("GET", f"servers/{node}")
        shown = self._cloud.show(volume)
        if shown["status"] != "available":
            assert shown["status"] == "in-use"
            self.writes.append("detach")
            self._cloud.compute("DELETE", f"servers/{node}/os-volume_attachments/{volume}")
        eventually(lambda: not self._has(node, volume), SECONDS, 0.05)

    def _has(self, node: str, volume: str) -> bool:
        servers = [one["server_id"] for one in self._cloud.show(volume)["attachments"]]
        return node in servers

    def expand(self, volume: str, size: int) -> None:
        """ControllerExpandVolume, also of an attached volume."""
        shown = self._cloud.show(volume)
        if shown["size"] >= size:
            return
        status = shown["status"]
        version = {"in-use": _EXTENDS, "available": ""}[status]
        body = {"os-extend": {"new_size": size}}
        self.writes.append("extend")
        self._cloud.volume("POST", f"volumes/{volume}/action", body, version=version)
        self._cloud.wait(volume, ("extending",), (status,))
        assert self._cloud.show(volume)["size"] == size

    def snapshot(self, name: str, volume: str) -> str:
        """CreateSnapshot: idempotent by the name."""
        found = self._cloud.volume("GET", f"snapshots?name={name}")["snapshots"]
        assert len(found) < 2
        if found:
            assert found[0]["volume_id"] == volume
            return str(found[0]["id"])
        body = {"volume_id": volume, "name": name, "force": False, "metadata": _CLUSTER}
        body["description"] = "Created by OpenStack Cinder CSI driver"
        self.writes.append("snapshot")
        made = self._cloud.volume("POST", "snapshots", {"snapshot": body})["snapshot"]
        path = f"snapshots/{made['id']}"

        def ready() -> bool:
            return bool(self._cloud.volume("GET", path)["snapshot"]["status"] == "available")

        eventually(ready, SECONDS, 0.05)
        return str(made["id"])

    def delete_snapshot(self, snapshot: str) -> None:
        """DeleteSnapshot; gone already is well."""
        self._delete(f"snapshots/{snapshot}")

    def delete_volume(self, volume: str) -> None:
        """DeleteVolume; gone already is well."""
        try:
            shown = self._cloud.show(volume)
        except Gone:
            return
        assert shown["attachments"] == []
        self._delete(f"volumes/{volume}")

    def _delete(self, path: str) -> None:
        try:
            self._cloud.volume("DELETE", path)
        except Gone:
            return
        self.writes.append("delete")
        eventually(lambda: not self._cloud.has("volume", path), SECONDS, 0.05)


@pytest.fixture
def controller(cloud: Gophercloud) -> Controller:
    return Controller(cloud)


@pytest.mark.usefixtures("shared_storage")
def test_life_of_a_claim(cloud: Gophercloud, controller: Controller, node: Any) -> None:
    volume = controller.create_volume("pvc-1", 1, zone="nova")
    assert controller.create_volume("pvc-1", 1, zone="nova")["id"] == volume["id"]
    assert (volume["availability_zone"], volume["metadata"]) == ("nova", _CLUSTER)
    device = controller.publish(node.id, volume["id"])
    assert device == controller.publish(node.id, volume["id"]) != ""
    for _ in range(2):
        controller.expand(volume["id"], 2)
    with pytest.raises(Refused, match="400"):
        # A volume that a node has isn't removed.
        cloud.volume("DELETE", f"volumes/{volume['id']}")
    for _ in range(2):
        controller.unpublish(node.id, volume["id"])
    cloud.wait(volume["id"], ("detaching",), ("available",))
    controller.expand(volume["id"], 3)
    for _ in range(2):
        controller.delete_volume(volume["id"])
    wanted = ["create", "attach", "extend", "detach", "extend", "delete"]
    assert controller.writes == wanted


@pytest.mark.usefixtures("shared_storage")
def test_a_claim_is_restored_from_a_snapshot(cloud: Gophercloud, controller: Controller) -> None:
    volume = controller.create_volume("pvc-source", 1)["id"]
    snapshot = controller.snapshot("snapshot-1", volume)
    assert controller.snapshot("snapshot-1", volume) == snapshot
    restored = controller.create_volume("pvc-restored", 2, snapshot_id=snapshot)
    assert (restored["snapshot_id"], restored["size"]) == (snapshot, 2)
    cloned = controller.create_volume("pvc-cloned", 2, source_volid=restored["id"])
    assert cloned["source_volid"] == restored["id"]
    # ListSnapshots and ListVolumes go by pages.
    listed = cloud.volume("GET", f"snapshots?status=available&volume_id={volume}&limit=1")
    assert [one["id"] for one in listed["snapshots"]] == [snapshot]
    assert pages(cloud) == {volume, restored["id"], cloned["id"]}
    assert cloud.volume("GET", "limits")["limits"]["absolute"]["maxTotalVolumes"] > 0
    for one in (cloned["id"], restored["id"]):
        controller.delete_volume(one)
    for _ in range(2):
        controller.delete_snapshot(snapshot)
    controller.delete_volume(volume)


def pages(cloud: Gophercloud) -> set[str]:
    """The IDs of all volumes, one a page."""
    found: set[str] = set()
    path = "volumes/detail?limit=1"
    while path:
        page = cloud.volume("GET", path)
        found |= {one["id"] for one in page["volumes"]}
        following = [one["href"] for one in page.get("volumes_links", ()) if one["rel"] == "next"]
        path = following[0].partition("/v3/")[2] if following else ""
    return found
