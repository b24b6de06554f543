"""The form for a new server: what it offers first, what it asks for, and what it says before."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures import terraform
from tests.functional import programs
from tests.functional.cloud import EmbeddedCloud, eventually
from tests.functional.dashboard.browser import Browser, Parsed
from tests.functional.dashboard.test_pages import MOST_CALLS, wait_for

FORM = "/servers/create"
PUBLIC = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHcx7wWMhAn6SlcYqoDkUcmEnNq4cDJ2Vxsx0i5fLR8N me"


def send(browser: Browser, **fields: Any) -> Parsed:
    """Send the form as it is but for some fields."""
    browser.get(FORM)
    form = browser.form(FORM)
    small = {
        "image": form.choices["image"]["cirros"],
        "flavor": form.choices["flavor"]["m1.nano"],
    }
    return browser.post(FORM, {**form.fields, **small, "name": "made", **fields})


@pytest.fixture
def no_keys(three_nodes: EmbeddedCloud) -> Iterator[None]:
    """Delete the key pairs that a test makes."""
    yield
    compute = three_nodes.connection().compute
    for one in compute.keypairs():
        compute.delete_keypair(one)


def test_the_defaults_do_not_fail(cleared: None, member: Browser) -> None:
    text = member.get(FORM).text
    assert member.calls <= MOST_CALLS[FORM]
    form = member.form(FORM)
    assert form.fields["flavor"] in form.choices["flavor"].values()
    assert "doesn't fit" not in text
    assert form.fields["network"] == form.choices["network"]["vmbr0"]
    assert form.fields["source"] == "image"
    assert "What is left of the quota" in text
    member.submit(FORM, name="plain")
    assert "Under way: plain is being created." in member.parsed.text
    wait_for(member, member.path, "ACTIVE")


def test_the_newest_image_comes_first_and_snapshots_apart(member: Browser) -> None:
    member.get(FORM)
    assert '<optgroup label="Public">' in member.page.text
    chosen = member.form(FORM)
    assert chosen.fields["image"] in chosen.choices["image"].values()
    other = chosen.choices["image"]["debian-12"]
    member.get(f"{FORM}?image={other}")
    assert member.form(FORM).fields["image"] == other


def test_images_with_data_are_grouped_the_newest_first(
    cleared: None, member: Browser, three_nodes: EmbeddedCloud
) -> None:
    own = three_nodes.connection().image
    formats = {"disk_format": "raw", "container_format": "bare"}
    for name, more in (("older", {}), ("newer", {}), ("copied", {"image_type": "snapshot"})):
        own.create_image(name, data=bytes(512), **formats, **more)
    names = {"older", "newer", "copied"}
    eventually(lambda: names <= {one.name for one in own.images(status="active")})
    own.create_image("without data", **formats)
    member.get(FORM)
    select = member.page.text.partition('<select id="image"')[2].partition("</select>")[0]
    groups = {
        title: re.findall(r">([^<]+)</option>", rows)
        for title, rows in re.findall(r'<optgroup label="([^"]+)">(.*?)</optgroup>', select)
    }
    assert list(groups) == ["Public", "Of this project", "Snapshots"]
    assert "cirros" in groups["Public"]
    assert groups["Of this project"] == ["newer", "older"]
    assert groups["Snapshots"] == ["copied"]


def card(browser: Browser, flavor: str) -> str:
    """Return a flavor's card, as HTML."""
    [found] = [
        one
        for one in re.findall(r'<label class="pick.*?</label>', browser.page.text, re.DOTALL)
        if f'data-text="{flavor}"' in one
    ]
    return str(found)


def test_a_flavor_beyond_the_quota_can_not_be_chosen(
    member: Browser, three_nodes: EmbeddedCloud
) -> None:
    admin = three_nodes.connection("micronova-admin").compute
    quotas = f"/os-quota-sets/{three_nodes.connection().current_project_id}"
    admin.put(quotas, json={"quota_set": {"cores": 2}})
    try:
        send(member, do="preview")
        for flavor, fits in (("m1.tiny", True), ("m1.xlarge", False)):
            found = card(member, flavor)
            assert ('class="pick dim"' in found, " disabled>" in found) == (not fits, not fits)
        assert "quota: 2 VCPUs left" in card(member, "m1.xlarge")
        # what fits another image
        image = member.form(FORM).choices["image"]["debian-12"]
        member.get(f"{FORM}?image={image}")
        assert "the image needs" in card(member, "m1.nano")
        assert " disabled>" not in card(member, "m1.nano")
        # what fits for fewer servers can still be chosen, and what is chosen says why it doesn't
        send(member, count="3", do="preview")
        found = card(member, "m1.nano")
        assert ('class="pick dim"' in found, " checked>" in found) == (True, True)
        assert " disabled>" not in card(member, "m1.tiny")
        # nothing but the form's own choice is closed there: the API refuses
        send(member, flavor=member.form(FORM).choices["flavor"]["m1.xlarge"])
        assert "Refused: Quota exceeded" in member.parsed.text
    finally:
        admin.delete(quotas)


def test_a_flavor_that_does_not_fit_says_why(member: Browser) -> None:
    member.get(FORM)
    flavor = member.form(FORM).choices["flavor"]["m1.xlarge"]
    text = send(member, flavor=flavor, count="50", do="preview").text
    assert member.path == FORM
    assert re.search(r"m1.xlarge 8 VCPUs, 16 GiB, 160 GiB quota: \d+ \w+ left", text)
    assert "not enough" in text
    assert "It doesn't fit: quota:" in text
    text = send(member, source="new", boot_size="0", do="preview").text
    assert re.search(r"The image needs a volume of \d+ GiB", text)
    assert "No servers." in member.get("/servers").text


def test_the_same_as_a_command_and_as_terraform(member: Browser) -> None:
    send(
        member,
        name="o'dd ${x}",
        do="preview",
        source="new",
        boot_size="3",
        data="1, 2",
        tags="a,b",
        metadata="tier=front",
        user_data="#cloud-config\n",
        groups="default",
    )
    raw = member.parsed.text
    assert "The image needs a volume of" not in raw
    for part in (
        "server create",
        "--flavor m1.nano",
        "destination_type=volume",
        "volume_size=3",
        "--tag a",
        "--property tier=front",
        "--user-data user-data",
        'resource "openstack_compute_instance_v2"',
        'name = "o\'dd $${x}"',
        'flavor_name = "m1.nano"',
        "volume_size = 2",
    ):
        assert part in raw, part


@pytest.fixture
def apart(three_nodes: EmbeddedCloud, cleared: None) -> Iterator[str]:
    """A server group: its ID."""
    compute = three_nodes.connection().compute
    group = compute.create_server_group(name="apart", policy="anti-affinity")
    yield str(group.id)
    compute.delete_server_group(group)


#: which key pair: the form's fields, and the server's key
KEYS: dict[str, tuple[dict[str, str], str]] = {
    "old": ({"key": "old"}, "old"),
    # the field of key pairs that exist has one preselected, which isn't the server's
    "new": ({"key_how": "make", "key_name": "new one"}, "new one"),
    "own": ({"key_how": "import", "key_name": "own", "public_key": PUBLIC}, "own"),
}


def copied(browser: Browser, label: str) -> str:
    """Return what a page shows to be copied."""
    found = re.search(rf'aria-label="{label}">(.*?)</pre>', browser.page.text, re.DOTALL)
    assert found is not None
    return html.unescape(found[1])


@pytest.mark.parametrize("key", KEYS)
def test_the_commands_make_the_same(
    apart: str,
    no_keys: None,
    member: Browser,
    three_nodes: EmbeddedCloud,
    tmp_path: Path,
    key: str,
) -> None:
    compute = three_nodes.connection().compute
    compute.create_keypair(name="old", public_key=PUBLIC)
    disks = {"source": "new", "boot_size": "2", "data": "1", "boot_with": "1"}
    place = {"zone": "nova", "server_group": apart, "hostname": "inside"}
    fields, name = KEYS[key]
    send(
        member,
        **{"name": "by a command", "do": "preview", "tags": "a,b", "metadata": "tier=front"},
        **{**disks, **place, **fields},
    )
    assert {one.name for one in compute.keypairs()} == {"old"}
    programs_path = f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}"
    ran = subprocess.run(
        ["sh", "-ec", copied(member, "Command")],
        env={**three_nodes.environment("micronova-demo"), "PATH": programs_path},
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
        timeout=programs.SECONDS,
    )
    assert ran.returncode == 0, ran.stderr
    [server] = compute.servers()
    assert (server.name, set(server.tags)) == ("by a command", {"a", "b"})
    compute.wait_for_server(server, wait=60)
    made = compute.get_server(server.id)
    assert (made.metadata, made.key_name) == ({"tier": "front"}, name)
    assert (made.hostname, made.server_groups) == ("inside", [apart])
    assert made.availability_zone == "nova"
    volumes = three_nodes.connection().block_storage.volumes()
    assert sorted(one.size for one in volumes) == [1, 2]
    if key == "own":
        assert compute.get_keypair("own").public_key == PUBLIC
    if key == "new":
        private = tmp_path / "private-key"
        assert "PRIVATE KEY" in private.read_text()
        assert private.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("key", KEYS)
def test_terraform_makes_the_same(
    apart: str, no_keys: None, member: Browser, three_nodes: EmbeddedCloud, key: str
) -> None:
    three_nodes.connection().compute.create_keypair(name="old", public_key=PUBLIC)
    fields, name = KEYS[key]
    place = {"zone": "nova", "server_group": apart, "hostname": "inside"}
    send(member, name="by terraform", do="preview", **{**place, **fields})
    *keys, server = terraform.resources(copied(member, "Terraform"))
    # the provider's first version that has a hostname is later than the version known here
    assert terraform.unknown(server) == {"hostname"}
    asked = server.arguments
    assert (server.kind, asked["name"]) == ("openstack_compute_instance_v2", "by terraform")
    assert (asked["availability_zone"], asked["hostname"]) == ("nova", "inside")
    assert asked["scheduler_hints"] == {"group": apart}
    if key == "old":
        assert (keys, asked["key_pair"]) == ([], "old")
        return
    [made] = keys
    assert made.kind == "openstack_compute_keypair_v2"
    assert terraform.unknown(made) == set()
    assert made.arguments == {"name": name} | ({"public_key": PUBLIC} if key == "own" else {})
    assert asked["key_pair"] == f"{made.address}.name"


def test_a_new_key_pair_is_shown_where_there_is_none(member: Browser) -> None:
    send(member, name="first", do="preview", key_how="make", key_name="fresh")
    assert "keypair create --private-key private-key fresh" in copied(member, "Command")
    assert "--key-name fresh" in copied(member, "Command")


def test_whether_it_would_fit(cleared: None, member: Browser, admin: Browser) -> None:
    text = send(admin, do="fit").text
    assert re.search(r"Yes, on pve\d", text)
    text = send(member, do="fit").text
    assert "Yes, there is room for it now." in text
    assert "pve" not in text.partition("Would it fit? Yes")[2].partition("What is left")[0]
    text = send(member, do="fit", count="100").text
    assert "No: quota: " in text
    assert "No servers." in member.get("/servers").text
    # a key pair that is yet to be made is no reason against it
    send(admin, do="fit", count="2", key_how="make", key_name="to come")
    assert re.search(r"Yes, all 2: [12] on pve\d", admin.parsed.text)


def test_members_read_that_no_host_has_room(
    member: Browser, reader: Browser, three_nodes: EmbeddedCloud
) -> None:
    admin = three_nodes.connection("micronova-admin").compute
    huge = admin.create_flavor(name="huge", ram=1 << 20, vcpus=1, disk=1)
    quotas = f"/os-quota-sets/{three_nodes.connection().current_project_id}"
    admin.put(quotas, json={"quota_set": {"ram": -1}})
    try:
        text = send(member, flavor=huge.id, do="fit").text
        assert "Not now: no host has room for it." in text
        assert "pve" not in text
    finally:
        admin.delete(quotas)
        admin.delete_flavor(huge)
    reader.post(FORM, {"csrf": reader.csrf, "do": "fit"})
    assert reader.status == 403


def test_a_template_of_user_data(cleared: None, member: Browser) -> None:
    send(member, do="template", template="docker", tags="mine", user_data="what was there")
    form = member.form(FORM)
    assert form.fields["user_data"].startswith("#cloud-config")
    assert "docker.io" in form.fields["user_data"]
    assert (form.fields["template"], form.fields["tags"]) == ("docker", "mine")
    assert "No servers." in member.get("/servers").text
    send(member, do="template", template="", user_data="what was there")
    assert member.form(FORM).fields["user_data"] == ""
    send(member, do="template", template="<none>")
    assert (member.status, member.form(FORM).fields["user_data"]) == (200, "")
    # what is in the field is asked for, not what is chosen
    send(member, do="preview", template="docker", user_data="#cloud-config\n# mine")
    assert member.form(FORM).fields["user_data"] == "#cloud-config\n# mine"


def test_a_volume_to_boot_from_data_and_all_the_rest(
    cleared: None, no_keys: None, member: Browser, three_nodes: EmbeddedCloud
) -> None:
    connection = three_nodes.connection()
    compute, volumes = connection.compute, connection.block_storage
    free = volumes.create_volume(name="free", size=1)
    eventually(lambda: volumes.get_volume(free).status == "available")
    group = compute.create_server_group(name="apart", policy="anti-affinity")
    try:
        send(
            member,
            name="full",
            source="new",
            boot_size="2",
            boot_with="1",
            data="1",
            volumes=free.id,
            groups="default",
            server_group=group.id,
            hostname="inside",
            tags="web, front",
            metadata="tier=front",
            user_data="#cloud-config\n",
            key_how="import",
            key_name="mine",
            public_key=PUBLIC,
        )
        assert "Under way: full is being created." in member.parsed.text
        wait_for(member, member.path, "ACTIVE")
        found = compute.get_server(member.path.rpartition("/")[2])
        assert (found.key_name, found.hostname) == ("mine", "inside")
        assert set(found.tags) == {"web", "front"}
        assert dict(found.metadata) == {"tier": "front"}
        assert found.server_groups == [group.id]
        assert sorted(one.size for one in volumes.volumes() if one.attachments) == [1, 1, 2]
        text = member.get(f"{member.path}/storage").text
        assert text.count("volume") >= 3
        assert "Root disk" not in text
        member.post(f"/servers/{found.id}/delete", {"csrf": member.csrf})
        eventually(lambda: not list(compute.servers()))
    finally:
        compute.delete_server_group(group)


def test_a_key_pair_is_made_and_shown_once(
    cleared: None, no_keys: None, member: Browser, three_nodes: EmbeddedCloud
) -> None:
    send(member, key_how="make", key_name="fresh")
    text = member.parsed.text
    assert "PRIVATE KEY" in text
    assert "It is shown this once" in text
    [link] = [one for one in member.parsed.links if re.search("/servers/[0-9a-f-]{36}$", one)]
    member.get(link.removeprefix("/dashboard"))
    assert "Key pair fresh" in member.parsed.text
    assert "PRIVATE KEY" not in member.page.text
    member.get(FORM)
    assert member.form(FORM).fields["key"] == "fresh"
    # the key pair was made before the server was refused: its private key isn't lost
    text = send(member, key_how="make", key_name="second", image="nothing").text
    assert member.status == 400
    assert "PRIVATE KEY" in text
    assert "Refused:" in text
    assert member.form(FORM).fields["key"] == "second"
    assert member.form(FORM).fields["key_name"] == ""
    text = send(member, key_how="make", key_name="second").text
    assert member.status == 409
    assert "already exists" in text


@pytest.mark.parametrize(
    "fields",
    [
        {"metadata": "no item"},
        {"data": "x"},
        {"data": "0"},
        {"source": "new", "boot_size": "x"},
        {"source": "volume", "boot_volume": "nothing"},
        {"source": "odd"},
        {"volumes": "nothing"},
        {"server_group": "nothing"},
        {"tags": "a/b"},
        {"groups": "nothing"},
        {"hostname": "not a name"},
        {"key_how": "import", "key_name": "x", "public_key": "no key"},
        {"key_how": "make", "key_name": ""},
        {"flavor": ""},
        {"user_data": "x" * 60_000},
    ],
    ids=str,
)
def test_odd_requests_are_refused_in_the_form(
    cleared: None, no_keys: None, member: Browser, fields: dict[str, str]
) -> None:
    send(member, **fields)
    assert 400 <= member.status < 500
    assert member.has_form(FORM)
    assert "Refused:" in member.parsed.text
    for name, value in fields.items():
        if name in member.form(FORM).fields and name in ("metadata", "data", "tags", "hostname"):
            assert member.form(FORM).fields[name] == value
    for step in ("preview", "fit"):
        send(member, **fields, do=step)
        assert member.status == 200
    assert "No servers." in member.get("/servers").text
