"""The unmodified `cinder`, and its library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cinderclient.client
import cinderclient.exceptions
import keystoneauth1.session
import pytest

from tests.compat.conftest import TIMEOUT_SECONDS, Site
from tests.functional import programs
from tests.functional.waiting import eventually

#: of clouds.yaml → the environment's
_NAMES = {
    "auth_url": "OS_AUTH_URL",
    "username": "OS_USERNAME",
    "password": "OS_PASSWORD",
    "project_name": "OS_PROJECT_NAME",
    "user_domain_name": "OS_USER_DOMAIN_NAME",
    "project_domain_name": "OS_PROJECT_DOMAIN_NAME",
}
#: what only reads, and what it shows
_LOOKS = (
    ("type-list", "{volume_type}"),
    ("type-default", "{volume_type}"),
    ("extra-specs-list", "volume_backend_name"),
    ("availability-zone-list", "nova"),
    ("absolute-limits", "maxTotalVolumes"),
    ("rate-limits", "Verb"),
    ("get-pools --detail", "free_capacity_gb"),
    ("service-list", "cinder-volume"),
    ("service-list --withreplication True", "disabled"),
    ("get-capabilities {host}", "Proxmox VE"),
    ("quota-show demo", "per_volume_gigabytes"),
    ("quota-usage demo", "In_use"),
    ("quota-defaults demo", "gigabytes"),
    ("quota-class-show default", "gigabytes"),
    ("list-filters --resource volume", "name~"),
    ("list-extensions", "os-quota-sets"),
    ("summary", "total_count"),
    ("message-list --resource_type VOLUME", "Event ID"),
    ("attachment-list", "Server ID"),
    ("encryption-type-list", "Provider"),
    ("backup-list", "Volume ID"),
    ("transfer-list", "Volume ID"),
    ("group-list", "Status"),
    ("group-type-list", "Description"),
    ("qos-list", "Consumer"),
    ("manageable-list {host}", "reference"),
    ("cluster-list", "Binary"),
    ("default-type-list", "Project ID"),
    ("version-list", "3.71"),
)


class Cinder:
    """Runs `cinder` as a user does."""

    def __init__(self, site: Site, user: str = "micronova", version: str = "3.71") -> None:
        self._auth = site.cloud.config(user).config["auth"]
        self._version = version

    def run(self, *words: str) -> Any:
        environment = {_NAMES[key]: value for key, value in self._auth.items() if key in _NAMES}
        asked = ("--os-volume-api-version", self._version, *words)
        return programs.run("cinder", asked, environment, TIMEOUT_SECONDS)

    def do(self, *words: str) -> str:
        """Return what it prints; it must have worked."""
        done = self.run(*words)
        assert done.returncode == 0, f"cinder {' '.join(words)}: {done.stdout}{done.stderr}"
        return str(done.stdout)

    def shows(self, *words: str) -> dict[str, str]:
        """Return a table of two columns."""
        cells = [line.split("|") for line in self.do(*words).splitlines() if line.count("|") == 3]
        return {key.strip(): value.strip() for _, key, value, _ in cells}

    def becomes(self, name: str, status: str, kind: str = "") -> None:
        eventually(lambda: self.shows(f"{kind}show", name)["status"] == status, 30, 0.2)


@pytest.fixture
def cinder(site: Site) -> Cinder:
    return Cinder(site)


@pytest.fixture
def volume(cinder: Cinder, name: str) -> Iterator[str]:
    """The name of a volume that is there."""
    made = cinder.shows("create", "1", "--name", name, "--metadata", "tier=gold")
    assert (made["name"], made["size"]) == (name, "1")
    cinder.becomes(name, "available")
    yield name
    cinder.run("reset-state", "--state", "available", name)
    cinder.do("delete", "--cascade", name)
    eventually(lambda: cinder.run("show", name).returncode != 0, 30, 0.2)


def test_what_there_is(cinder: Cinder, host: str, volume_type: str) -> None:
    for words, shown in _LOOKS:
        said = cinder.do(*words.format(host=host).split())
        assert shown.format(volume_type=volume_type) in said, words


def test_a_volume(cinder: Cinder, volume: str) -> None:
    cinder.do("extend", volume, "2")
    cinder.becomes(volume, "available")
    assert cinder.shows("show", volume)["size"] == "2"
    cinder.do("rename", volume, volume, "--description", "data")
    cinder.do("metadata", volume, "set", "owner=me")
    cinder.do("metadata", volume, "unset", "tier")
    assert cinder.shows("metadata-show", volume) == {"Metadata-property": "Value", "owner": "me"}
    cinder.do("metadata-update-all", volume, "a=b")
    assert cinder.shows("metadata-show", volume)["a"] == "b"
    cinder.do("set-bootable", volume, "true")
    cinder.do("readonly-mode-update", volume, "true")
    cinder.do("image-metadata", volume, "set", "os_distro=debian")
    assert cinder.shows("image-metadata-show", volume)["os_distro"] == "debian"
    cinder.do("image-metadata", volume, "unset", "os_distro")
    shown = cinder.shows("show", volume)
    assert (shown["bootable"], shown["description"]) == ("true", "data")
    for filters in (f"name={volume}", f"name~={volume[1:]}", "size=2"):
        assert volume in cinder.do("list", "--filters", filters), filters
    assert volume in cinder.do("list", "--metadata", "a=b")
    assert volume not in cinder.do("list", "--filters", "status=error")
    assert "Volume in total: 1" in cinder.do("list", "--name", volume, "--with-count")
    cinder.do("reset-state", "--state", "error", volume)
    cinder.becomes(volume, "error")


def test_snapshots(cinder: Cinder, volume: str) -> None:
    shot, copy = f"{volume}-shot", f"{volume}-copy"
    taken = cinder.shows("snapshot-create", volume, "--name", shot)
    cinder.becomes(shot, "available", "snapshot-")
    assert taken["id"] in cinder.do("snapshot-list", "--name", shot)
    cinder.do("snapshot-rename", shot, shot, "--description", "before")
    cinder.do("snapshot-metadata", shot, "set", "a=b")
    assert cinder.shows("snapshot-metadata-show", shot)["a"] == "b"
    cinder.do("create", "--snapshot-id", taken["id"], "--name", copy)
    cinder.becomes(copy, "available")
    cinder.do("delete", copy)
    cinder.do("revert-to-snapshot", shot)
    cinder.becomes(volume, "available")
    cinder.do("snapshot-reset-state", "--state", "error", shot)
    cinder.do("snapshot-delete", shot)
    eventually(lambda: cinder.run("snapshot-show", shot).returncode != 0, 30, 0.2)


def test_types_and_quotas(cinder: Cinder, host: str) -> None:
    cinder.do("type-create", "cinder-gold", "--is-public", "false")
    try:
        cinder.do("type-key", "cinder-gold", "set", "tier=gold")
        assert "tier : gold" in cinder.do("type-show", "cinder-gold")
        project = cinder.shows("quota-show", "demo")
        assert project["volumes_cinder-gold"] == "-1"
        cinder.do("type-update", "cinder-gold", "--description", "fast")
        assert "cinder-gold" in cinder.do("type-list")
    finally:
        cinder.do("type-delete", "cinder-gold")
    assert "disabled" in cinder.do("service-disable", host, "cinder-volume")
    assert "enabled" in cinder.do("service-enable", host, "cinder-volume")


def test_the_library(site: Site, name: str) -> None:
    config = site.cloud.config("micronova-demo")
    session = keystoneauth1.session.Session(auth=config.get_auth(), verify=config.verify)
    client = cinderclient.client.Client("3.71", session=session)
    volume = client.volumes.create(1, name=name)
    eventually(lambda: client.volumes.get(volume.id).status == "available", 30, 0.2)
    assert [one.id for one in client.volumes.list(search_opts={"name": name})] == [volume.id]
    with pytest.raises(cinderclient.exceptions.BadRequest, match="Invalid filters color"):
        client.volumes.list(search_opts={"color": "red"})
    client.volumes.set_metadata(volume, {"a": "b"})
    client.volumes.reserve(volume)
    client.volumes.unreserve(volume)
    snapshot = client.volume_snapshots.create(volume.id, name=name)
    eventually(lambda: client.volume_snapshots.get(snapshot.id).status == "available", 30, 0.2)
    with pytest.raises(cinderclient.exceptions.BadRequest):
        client.volumes.delete(volume)
    client.volumes.delete(volume, cascade=True)

    def gone() -> bool:
        return volume.id not in [one.id for one in client.volumes.list()]

    eventually(gone, 30, 0.2)
    with pytest.raises(cinderclient.exceptions.NotFound):
        client.volumes.get(volume.id)
