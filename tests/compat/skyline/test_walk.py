"""An unmodified Skyline: somebody logs in with chromium and uses servers and volumes.

`tox -e skyline` installs it and runs this; it is too large for every run. What the APIs refused
is read from their metrics: nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.horizon.horizon import refusals
from tests.compat.skyline.person import Person
from tests.compat.skyline.skyline import MISSING, running_skyline
from tests.functional.cloud import EmbeddedCloud, embedded_cloud

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]

PASSWORD = "Secret-1234"
PAGES = {
    "/base/overview": ("Instances : 0 / 10", "Volumes : 0 / 10"),
    "/compute/instance": ("Create Instance", "No Data"),
    "/compute/keypair": ("Create Keypair", "No Data"),
    "/compute/server-group": ("Create Server Group", "No Data"),
    "/storage/snapshot": ("No Data",),
    "/storage/backup": ("Create Volume Backup", "No Data"),
    "/network/port": ("No Data",),
    "/network/security-group": ("Create Security Group", "default"),
}
OF_ADMINISTRATORS = {
    "/base/overview-admin": ("Platform Info", "nova-conductor", "pve3"),
    "/compute/instance-admin": ("Total 0 items",),
    "/compute/hypervisors-admin": ("pve1", "QEMU"),
    "/compute/flavor-admin": ("Create Flavor",),
    "/compute/aggregates-admin": ("Create Host Aggregate",),
    "/compute/image-admin": ("cirros", "Active"),
    "/storage/volume-admin": ("Total 0 items",),
    "/storage/volume-type-admin": ("shared", "Manage QoS Spec"),
    "/storage/storage-admin": ("pve1@local#local",),
    "/storage/snapshot-admin": ("Total 0 items",),
    "/storage/backup-admin": ("Total 0 items",),
    "/network/networks-admin": ("vmbr0", "Active"),
    "/network/port-admin": ("Total 0 items",),
    "/configuration-admin/info": ("nova", "/compute/v2.1"),
    "/configuration-admin/metadata": ("Guest hardware", "OS::Nova::Flavor"),
    "/identity/project-admin": ("service", "demo"),
    "/identity/user-admin": ("demo-reader",),
}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCloud]:
    with embedded_cloud(tmp_path_factory.mktemp("cloud"), speed=50) as running:
        yield running


@pytest.fixture(scope="module")
def url(cloud: EmbeddedCloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_skyline(cloud, tmp_path_factory.mktemp("skyline")) as running:
        yield running


@contextlib.contextmanager
def logged_in(cloud: EmbeddedCloud, url: str, folder: Path, who: str) -> Iterator[Person]:
    from tests.browser.chromium import chromium

    with chromium(folder) as driver:
        driver.set_window_size(1400, 900)
        yield Person(driver, url, cloud, who)


@pytest.fixture(scope="module")
def member(
    cloud: EmbeddedCloud, url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Person]:
    with logged_in(cloud, url, tmp_path_factory.mktemp("member"), "micronova-demo") as person:
        yield person


@pytest.fixture(autouse=True)
def nothing_is_refused(cloud: EmbeddedCloud, member: Person) -> Iterator[None]:
    before = refusals(cloud)
    yield
    assert [one for one, count in refusals(cloud).items() if count > before.get(one, 0)] == []


def test_pages_open(member: Person) -> None:
    for path, texts in PAGES.items():
        member.open(path, *texts)
    member.open("/compute/image", "Public Images")
    member.press("Public Images")
    member.sees_row("cirros", "Active", "QCOW2")
    member.open("/network/networks", "Shared Networks")
    member.press("Shared Networks")
    member.sees_row("vmbr0", "Active")


def test_pages_of_administrators_open(cloud: EmbeddedCloud, url: str, tmp_path: Path) -> None:
    with logged_in(cloud, url, tmp_path, "micronova-admin") as administrator:
        for path, texts in OF_ADMINISTRATORS.items():
            administrator.open(path, *texts)


def test_the_life_of_a_server(member: Person) -> None:
    """From the wizard's first page, with a system disk on a volume, to its deletion."""
    member.open("/compute/instance", "Create Instance")
    member.press("Create Instance")
    member.pick("m1.tiny")
    # It groups images by a property that those of import storages have not.
    member.press("Others")
    member.pick("cirros")
    member.choose("Please select type", "local")
    member.press("Next: Network Config")
    member.press("Shared Networks")
    member.pick("vmbr0")
    member.sees("Automatically Assigned Address")
    # ports of this network are filtered
    member.pick("Default security group")
    member.press("Next: System Config")
    member.press("Password")
    member.fill("#SystemStep_name", "web")
    member.fill("#SystemStep_password", PASSWORD)
    member.fill("#SystemStep_confirmPassword", PASSWORD)
    member.press("Next: Confirm Config")
    member.sees("Smart Scheduling")
    member.press("Confirm")
    member.sees_row("web", "m1.tiny", "Active", "10.20.")
    member.delete("web")


def test_a_volume(member: Person) -> None:
    member.open("/storage/volume", "Create Volume")
    member.press("Create Volume")
    member.sees("Blank Volume", "Selected")
    # its form forgets what is written while the volume types load
    member.sees_row("local", "Yes")
    member.fill('[id="create volume_name"]', "data")
    member.press("Confirm")
    member.sees_row("data", "10GiB", "Available")
    member.delete("data")
