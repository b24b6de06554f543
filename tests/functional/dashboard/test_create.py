"""The form for a new server: what it offers first, what it asks for, and what it says before."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

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


def test_the_command_makes_the_same(
    cleared: None, member: Browser, three_nodes: EmbeddedCloud
) -> None:
    fields = {"source": "new", "boot_size": "2", "data": "1", "boot_with": "1"}
    send(member, name="by a command", do="preview", tags="a,b", metadata="tier=front", **fields)
    found = re.search(r'aria-label="Command">(.*?)</pre>', member.page.text, re.DOTALL)
    assert found is not None
    program, *words = shlex.split(html.unescape(found[1]).replace("\\\n", " "))
    ran = programs.run(program, words, three_nodes.environment("micronova-demo"))
    assert ran.returncode == 0, ran.stderr
    compute = three_nodes.connection().compute
    [server] = compute.servers()
    assert (server.name, set(server.tags)) == ("by a command", {"a", "b"})
    assert compute.wait_for_server(server, wait=60).metadata == {"tier": "front"}
    volumes = three_nodes.connection().block_storage.volumes()
    assert sorted(one.size for one in volumes) == [1, 2]


def test_whether_it_would_fit(cleared: None, member: Browser, admin: Browser) -> None:
    text = send(admin, do="fit").text
    assert re.search(r"Yes, on pve\d", text)
    text = send(member, do="fit").text
    assert "shown to administrators" in text
    assert "No servers." in member.get("/servers").text
    send(admin, do="fit", count="2")
    assert re.search(r"Yes, all 2: [12] on pve\d", admin.parsed.text)


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
