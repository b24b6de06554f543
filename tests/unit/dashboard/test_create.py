"""The request for a new server, what is left of the quotas, and the same as others write it."""

from __future__ import annotations

import shlex
from typing import Any

import jinja2
import pytest
import yaml

from common.errors import Invalid
from dashboard.pages import flavors, lines
from dashboard.pages.create import quota, request, spelled, user_data
from dashboard.pages.create.fit import fit, room
from dashboard.story import decided

EMPTY: dict[str, Any] = dict.fromkeys(request.ONE, "") | {name: [] for name in request.SEVERAL}
GIVEN = EMPTY | {"name": "web", "flavor": "f", "image": "i", "source": "image", "count": "1"}


def test_the_least_that_is_asked_for() -> None:
    assert request.body(GIVEN) == {
        "server": {"name": "web", "flavorRef": "f", "networks": "auto", "imageRef": "i"}
    }


def test_networks_are_asked_for_once() -> None:
    asked = request.body(GIVEN | {"network": "a", "more": ["b", "a"]})
    assert asked["server"]["networks"] == [{"uuid": "a"}, {"uuid": "b"}]
    asked = request.body(GIVEN | {"network": "none", "more": ["b"]})
    assert asked["server"]["networks"] == "none"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"data": "5"}, [("image", "local"), ("blank", "volume")]),
        ({"source": "new", "boot_size": "9"}, [("image", "volume")]),
        ({"source": "volume", "boot_volume": "v"}, [("volume", "volume")]),
        ({"volumes": ["v"]}, [("image", "local"), ("volume", "volume")]),
    ],
)
def test_disks(fields: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    asked = request.body(GIVEN | fields)["server"]
    devices = asked["block_device_mapping_v2"]
    assert [(one["source_type"], one["destination_type"]) for one in devices] == expected
    assert [one["boot_index"] for one in devices] == [0, *[-1] * (len(devices) - 1)]
    assert ("imageRef" in asked) == (fields.get("source", "image") == "image")


def test_metadata_that_are_no_items_are_refused() -> None:
    with pytest.raises(Invalid):
        request.body(GIVEN | {"metadata": "x"})


@pytest.mark.parametrize(("text", "number"), [("3", 3), ("x", 1), ("-1", 1), ("", 1)])
def test_the_number_of_servers_for_quotas(text: str, number: int) -> None:
    assert request.count(GIVEN | {"count": text}) == number


def test_what_is_left_of_the_quotas() -> None:
    flavor = {"vcpus": 2, "ram": 1024, "disk": 1}
    limits = {
        "maxTotalCores": 8,
        "totalCoresUsed": 5,
        "maxTotalRAMSize": -1,
        "maxTotalVolumeGigabytes": 100,
        "totalGigabytesUsed": 10,
    }
    found = {one.title: (one.now, one.after) for one in quota.left(limits, flavor, 1, [5])}
    assert found == {"VCPUs": (3, 1), "Volumes' size": (90, 85)}
    assert quota.refusal(limits, flavor, 1, []) == ""
    assert quota.refusal(limits, flavor, 2, []) == "quota: 3 VCPUs left"
    assert quota.refusal(limits, flavor, 1, [91]) == "quota: 90 GiB left"


def test_what_an_image_needs() -> None:
    image = {"min_disk": 0, "min_ram": 512, "size": 10, "virtual_size": (2 << 30) + 1}
    small = {"ram": 256, "disk": 8}
    assert flavors.too_small(small, image) == "the image needs 512 MiB"
    assert flavors.too_small({"ram": 512, "disk": 2}, image) == "the image needs 3 GiB"
    assert flavors.too_small({"ram": 512, "disk": 2}, image, has_disk=False) == ""
    assert flavors.too_small({"ram": 512, "disk": 0}, image) == ""
    assert flavors.too_small(small, None) == ""


def test_a_command_is_read_by_a_shell_as_it_is_meant() -> None:
    body = request.body(
        GIVEN
        | {
            "name": "o'dd $(x)",
            "metadata": "note=a b",
            "server_group": "g",
            "source": "new",
            "boot_size": "4",
            "user_data": "x",
            "groups": ["a group"],
        }
    )
    words = shlex.split(spelled.command(body, "small").replace("\\\n", " "))
    assert words[:5] == ["openstack", "--os-compute-api-version", "2.96", "server", "create"]
    assert words[-1] == "o'dd $(x)"
    for option, value in (
        ("--property", "note=a b"),
        ("--hint", "group=g"),
        ("--flavor", "small"),
        ("--security-group", "a group"),
        ("--user-data", "user-data"),
    ):
        assert words[words.index(option) + 1] == value
    device = words[words.index("--block-device") + 1]
    assert "delete_on_termination=false" in device
    assert "volume_size=4" in device


def test_terraform_quotes_what_it_would_read_otherwise() -> None:
    body = request.body(GIVEN | {"name": '9"${x}', "count": "2", "metadata": "a.b=%{c}"})
    text = spelled.terraform(body, "small")
    assert text.startswith('resource "openstack_compute_instance_v2" "_9___x_" {')
    assert 'name = "9\\"$${x}-${count.index + 1}"' in text
    assert '"a.b" = "%%{c}"' in text
    assert "count = 2" in text


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"key": "old"}, "old"),
        ({"key": "old", "key_how": "make", "key_name": "new"}, "new"),
        ({"key": "old", "key_how": "import", "key_name": "own", "public_key": "ssh x"}, "own"),
        ({"key": "old", "key_how": "make"}, None),
    ],
)
def test_the_key_pair_is_that_which_is_chosen(fields: dict[str, str], key: str | None) -> None:
    assert request.body(GIVEN | fields)["server"].get("key_name") == key


def test_a_new_key_pair_comes_before_the_server() -> None:
    form = GIVEN | {"key_how": "make", "key_name": "9's"}
    text = spelled.command(request.body(form), "small", request.new_key(form))
    first, _, then = text.partition("\n")
    assert first.endswith("keypair create --private-key private-key '9'\"'\"'s')")
    assert "--key-name '9'\"'\"'s'" in then
    text = spelled.terraform(request.body(form), "small", request.new_key(form))
    assert text.startswith('resource "openstack_compute_keypair_v2" "_9_s" {\n  name = "9\'s"\n}')
    assert "key_pair = openstack_compute_keypair_v2._9_s.name" in text
    nameless = GIVEN | {"key_how": "import", "public_key": "ssh-ed25519 A's"}
    text = spelled.command(request.body(nameless), "small", request.new_key(nameless))
    file, create, _ = text.split("\n", 2)
    assert shlex.split(file) == ["printf", "%s", "ssh-ed25519 A's", ">public-key"]
    assert create.endswith("keypair create --public-key public-key KEY")
    assert "--key-name KEY" in text


def test_lines_show_only_what_they_give_back() -> None:
    items = {"a": "1", "b": "two\nlines", "c=": "x", " d": "x"}
    assert lines.as_lines(items) == "a=1"
    assert lines.pairs("a = b=c\n\n", "An item") == {"a": "b=c"}
    assert lines.words(" a,b\n a,, ") == ["a", "b"]


@pytest.mark.parametrize("template", user_data.TEMPLATES, ids=lambda one: one.title)
def test_templates_of_user_data_are_what_cloud_init_reads(template: user_data.Template) -> None:
    text = template.text
    assert text == "" or text.startswith(
        ("#cloud-config\n", "## template: jinja\n#cloud-config\n")
    )
    if text.startswith("## template: jinja"):
        # cloud-init's values: the keys of the server's key pair
        given = {"public_ssh_keys": ["ssh-ed25519 AAAA+/= me@there's"]}
        text = jinja2.Environment(autoescape=False).from_string(text).render(v1=given)
        user = yaml.safe_load(text)["users"][1]
        assert user["ssh_authorized_keys"] == given["public_ssh_keys"]
    read = yaml.safe_load(text) or {}
    assert set(read) <= {"package_update", "packages", "runcmd", "users"}
    assert all(isinstance(one, str | list) for one in read.get("runcmd", ()))


def test_a_template_that_does_not_exist_is_empty() -> None:
    assert user_data.text_of("../nothing") == ""


def test_what_several_decisions_come_to() -> None:
    first, second = decided({"host": "pve2"}), decided({"host": "pve1"})
    none = decided({"reason": "No host has 4096 MiB free."})
    one = fit([first])
    assert (one.places, one.fitting, one.count, one.refused) == ("pve2", 1, 1, None)
    assert fit([first, second, first]).places == "1 on pve1, 2 on pve2"
    some = fit([first, second, none, none])
    assert (some.fitting, some.count, some.refused) == (2, 4, none)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ({"fits": True, "servers": 1}, "Yes, there is room for it now."),
        ({"fits": True, "servers": 3}, "Yes, there is room for all of them now."),
        ({"servers": 3, "lacks_room": True}, "Not now: hosts have no room for all 3."),
        (
            {"servers": 1, "refused_by": ["image", "storage_room"]},
            "Not now: no host can take it. The hosts are refused by: image, storage room.",
        ),
        ({"servers": 2}, "Not now: no host can take all of them."),
    ],
)
def test_members_read_a_kind_of_reason(found: dict[str, Any], text: str) -> None:
    whole = {"fits": False, "lacks_room": False, "refused_by": [], **found}
    assert room({"fit": whole}).text == text
    assert room({"fit": whole}).fits == whole["fits"]
