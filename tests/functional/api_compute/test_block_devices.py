"""Block devices of a create, in both syntaxes; what is wrong with them is said in Nova's words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from common import ids
from conductor.rpc.servers.servers import BlockDevice
from db import schema
from tests.fixtures.compute import IMAGE, ComputeApi, a_flavor, a_full_server, uuid_of
from tests.fixtures.listings import NOW, Row, an_image
from tests.functional.api_compute.conftest import MakeApi
from tests.functional.api_compute.test_servers import a_create

VOLUME, BLANK, OTHERS = (ids.named("volume", name) for name in ("root", "blank", "others"))
ROOT_SHOT, DATA_SHOT = (ids.named("snapshot", name) for name in ("root", "data"))
FAST = ids.named("volume_type", "fast")
SEQUENCE = (
    "Block Device Mapping is Invalid: Boot sequence for the instance and image/block device "
    "mapping combination is not valid."
)
ROOT = {
    "uuid": IMAGE,
    "source_type": "image",
    "destination_type": "volume",
    "boot_index": 0,
    "volume_size": 30,
}
LOCAL = {"uuid": IMAGE, "source_type": "image", "destination_type": "local", "boot_index": 0}
BOOTED = {
    "uuid": VOLUME,
    "source_type": "volume",
    "destination_type": "volume",
    "boot_index": "0",
}
DATA = {"source_type": "blank", "destination_type": "volume", "volume_size": 5}
EPHEMERAL = {"source_type": "blank", "destination_type": "local"}
SWAP = {**EPHEMERAL, "guest_format": "swap"}


def a_volume(volume_id: str, project: str = "demo", **changes: Any) -> Row:
    values: dict[str, Any] = {
        "id": volume_id,
        "project_id": project,
        "user_id": "demo",
        "name": "",
        "status": "available",
        "size_gib": 5,
        "bootable": False,
        "readonly": False,
        "meta": {},
        "created_at": NOW,
        "shared": True,
    }
    return schema.volumes, values | changes


def a_type(name: str) -> Row:
    values = {
        "id": ids.named("volume_type", name),
        "name": name,
        "is_public": True,
        "storage": name,
        "extra_specs": {},
        "created_at": NOW,
    }
    return schema.volume_types, values


@pytest.fixture
def stocked(make: MakeApi) -> ComputeApi:
    kept = {"image_id": IMAGE, "os_distro": "debian", "min_ram": "512", "min_disk": "2"}
    return make(
        a_volume(VOLUME, bootable=True, image_id=IMAGE, image_metadata=kept),
        a_volume(BLANK),
        a_volume(OTHERS, "others", bootable=True),
        a_type("fast"),
        a_flavor("rich", ephemeral_gib=10, swap_mib=512),
        a_flavor("poor", memory_mib=256),
        an_image("min8", min_disk_gib=8),
        an_image("gone", status="deactivated"),
    )


def asked(api: ComputeApi, devices: list[Any], version: str = "2.96", **changes: Any) -> Any:
    values = {"block_device_mapping_v2": devices, "imageRef": ""}
    if version == "2.1":
        values["networks"] = [{"uuid": ids.named("network", "vmbr0")}]
    body = a_create(**(values | changes))
    answer = api.request("POST", "/servers", body, version=version)
    assert answer.status_code == 202, answer.text
    return api.conductor.asked[-1][1]


def test_an_image_on_a_new_volume(stocked: ComputeApi) -> None:
    request = asked(
        stocked, [{**ROOT, "volume_type": "fast", "tag": "root", "delete_on_termination": True}]
    )
    assert (request.image_id, request.volume_backed) == ("", True)
    assert request.volumes == (
        BlockDevice(
            size_gib=30,
            type_id=FAST,
            image_id=IMAGE,
            boot=True,
            delete_on_termination=True,
            tag="root",
        ),
    )
    assert (request.disk_tag, request.least_disk_gib, request.image_home) == (None, 0, None)
    by_id = asked(stocked, [{**ROOT, "volume_type": FAST}])
    assert by_id.volumes[0].type_id == FAST


def test_an_existing_volume(stocked: ComputeApi) -> None:
    request = asked(stocked, [BOOTED, {**DATA, "boot_index": None}])
    assert request.volumes == (
        BlockDevice(VOLUME, boot=True),
        BlockDevice(size_gib=5),
    )
    # The volume's image decides the hardware.
    assert request.image_properties == {"os_distro": "debian"}
    assert request.least_memory_mib == 512
    # Clients leave out the image, or send it empty.
    assert asked(stocked, [BOOTED], imageRef=None).volumes[0].volume_id == VOLUME


def test_a_boot_volume_beside_an_image(stocked: ComputeApi) -> None:
    """The image decides the hardware, as in Nova, and nothing is made of it."""
    stocked.add(an_image("fedora", properties={"os_distro": "fedora"}))
    image = ids.named("image", "fedora")
    request = asked(stocked, [BOOTED], imageRef=image)
    assert (request.volume_backed, request.image_id) == (True, image)
    assert (request.root_image_id, request.least_disk_gib, request.image_home) == (None, 0, None)
    assert request.volumes == (BlockDevice(VOLUME, boot=True),)
    assert request.image_properties == {"os_distro": "fedora"}
    # Whatever the volume is made of: it need not be bootable then.
    for root in ({**DATA, "boot_index": 0}, {**BOOTED, "uuid": BLANK}, ROOT):
        request = asked(stocked, [root], imageRef=image)
        assert (request.volume_backed, request.image_id) == (True, image)
        assert request.image_properties == {"os_distro": "fedora"}
    assert request.volumes[0].image_id == IMAGE


def test_the_image_beside_a_boot_volume_is_held_to_it(stocked: ComputeApi) -> None:
    """The least disk is the volume's to have where the request says its size, as in Nova."""
    stocked.add(an_image("hungry", min_ram_mib=4096))
    for image, root, words in (
        ("min8", {**DATA, "boot_index": 0}, "Volume size is 5368709120 bytes, minimum size is"),
        ("hungry", BOOTED, "Flavor's memory is too small for requested image."),
        ("gone", BOOTED, "is not active."),
        ("never", BOOTED, "Can not find requested image"),
    ):
        body = a_create(block_device_mapping_v2=[root], imageRef=ids.named("image", image))
        answer = stocked.request("POST", "/servers", body, version="2.96")
        assert answer.status_code == 400
        assert words in answer.json["badRequest"]["message"]
    assert asked(stocked, [BOOTED], imageRef=ids.named("image", "min8")).volume_backed


def test_the_bus_of_a_root_disk_wins_over_its_image_s(stocked: ComputeApi) -> None:
    stocked.add(an_image("sata", properties={"hw_disk_bus": "sata", "root_disk_bus": "ide"}))
    image = ids.named("image", "sata")
    plain = {"hw_disk_bus": "sata"}
    for bus, kept in (
        *((bus, {**plain, "root_disk_bus": bus}) for bus in ("virtio", "scsi", "sata", "ide")),
        ("", plain),
    ):
        local = {**LOCAL, "uuid": image, "disk_bus": bus}
        request = asked(stocked, [local], imageRef=image)
        assert request.image_properties == kept
    # A volume is on SCSI, which is virtio, too.
    request = asked(stocked, [{**ROOT, "disk_bus": "virtio"}, {**DATA, "disk_bus": "scsi"}])
    assert "root_disk_bus" not in request.image_properties


def test_volumes_beside_a_local_disk(stocked: ComputeApi) -> None:
    request = asked(
        stocked,
        [LOCAL, {**BOOTED, "uuid": BLANK, "boot_index": -1}, {**DATA, "boot_index": 1}],
        imageRef=IMAGE,
    )
    assert (request.image_id, request.volume_backed) == (IMAGE, False)
    assert [(one.volume_id, one.boot) for one in request.volumes] == [
        (BLANK, False),
        (None, False),
    ]


def test_a_flavor_s_disk_says_nothing_of_a_volume(stocked: ComputeApi) -> None:
    """Nor is a blank local disk made that has no size."""
    stocked.add(a_flavor("diskless", disk_gib=1))
    request = asked(stocked, [ROOT, EPHEMERAL], flavorRef="diskless")
    assert [one.size_gib for one in request.volumes] == [30]


@pytest.mark.parametrize(
    ("devices", "made"),
    [
        ([], [("ephemeral0", 10240, None), ("swap", 512, None)]),
        ([EPHEMERAL, SWAP], [("ephemeral0", 10240, None), ("swap", 512, None)]),
        (
            [
                {**EPHEMERAL, "volume_size": 3, "guest_format": "ext4", "tag": "scratch"},
                {**EPHEMERAL, "volume_size": 4},
            ],
            [("ephemeral0", 3072, "scratch"), ("ephemeral1", 4096, None), ("swap", 512, None)],
        ),
        (
            [{**SWAP, "volume_size": 100, "tag": "paging"}],
            [("ephemeral0", 10240, None), ("swap", 100, "paging")],
        ),
    ],
)
def test_local_disks_of_a_flavor(stocked: ComputeApi, devices: list[Any], made: list[Any]) -> None:
    flavor = asked(stocked, [ROOT, *devices], flavorRef="rich").flavor
    assert [(one.serial, one.size_mib, one.tag) for one in flavor.local_disks] == made
    assert flavor.local_gib == 11


def test_the_older_syntax(stocked: ComputeApi) -> None:
    devices = [
        {"device_name": "/dev/vda", "volume_id": VOLUME, "delete_on_termination": "True"},
        {"device_name": "vdb", "volume_id": BLANK},
        {"device_name": "vdc", "no_device": True},
    ]
    body = a_create(block_device_mapping=devices, imageRef="")
    assert stocked.request("POST", "/servers", body, version="2.96").status_code == 202
    request = stocked.conductor.asked[-1][1]
    assert request.volumes == (
        BlockDevice(VOLUME, boot=True, delete_on_termination=True),
        BlockDevice(BLANK),
    )
    beside = a_create(block_device_mapping=devices[1:], imageRef=IMAGE)
    assert stocked.request("POST", "/servers", beside, version="2.96").status_code == 202
    request = stocked.conductor.asked[-1][1]
    assert (request.image_id, [one.volume_id for one in request.volumes]) == (IMAGE, [BLANK])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"block_device_mapping": [{"volume_id": VOLUME}]},
            "Using different block_device_mapping syntaxes is not allowed in the same request.",
        ),
        ({"block_device_mapping_v2": [{**DATA, "boot_index": -1}]}, SEQUENCE),
        ({"block_device_mapping_v2": [{**ROOT, "boot_index": 1}]}, SEQUENCE),
        ({"block_device_mapping_v2": [ROOT, BOOTED]}, SEQUENCE),
        ({"block_device_mapping_v2": [DATA], "imageRef": IMAGE}, SEQUENCE),
        (
            {"block_device_mapping_v2": None, "block_device_mapping": [{"volume_id": VOLUME}]},
            SEQUENCE,
        ),
        (
            {"block_device_mapping_v2": None, "block_device_mapping": [{"volume_size": 1}]},
            "Block Device Mapping is Invalid: Unrecognized legacy format.",
        ),
        (
            {"block_device_mapping_v2": [{**DATA, "uuid": VOLUME}]},
            "Block Device Mapping is Invalid: Invalid device UUID.",
        ),
        (
            {"block_device_mapping_v2": [{"source_type": "volume", "boot_index": 0}]},
            "Block Device Mapping is Invalid: Missing device UUID.",
        ),
        (
            {"block_device_mapping_v2": [{"uuid": VOLUME, "boot_index": 0}]},
            "Block Device Mapping is Invalid: Some required fields are missing",
        ),
        (
            {"block_device_mapping_v2": [LOCAL]},
            "Block Device Mapping is Invalid: Mapping image to local is not supported.",
        ),
        (
            {"block_device_mapping_v2": [{**LOCAL, "uuid": VOLUME}], "imageRef": IMAGE},
            "it names another image than imageRef",
        ),
        (
            {"block_device_mapping_v2": [{**BOOTED, "destination_type": "local"}]},
            "Mapping volume to local is not supported.",
        ),
        (
            {"block_device_mapping_v2": [{**LOCAL, "volume_type": "fast"}], "imageRef": IMAGE},
            "Specifying a volume_type with destination_type=local is not supported.",
        ),
        (
            {"block_device_mapping_v2": [{**BOOTED, "volume_type": "fast"}]},
            "Specifying volume type to existing volume is not supported.",
        ),
        (
            {"block_device_mapping_v2": [{**ROOT, "volume_type": "slow"}]},
            "Volume type slow could not be found.",
        ),
        (
            {"block_device_mapping_v2": [{**ROOT, "volume_size": None}]},
            "Images with destination_type 'volume' need to have a non-zero size specified",
        ),
        (
            {"block_device_mapping_v2": [ROOT, {**DATA, "volume_size": None}]},
            "Blank volumes (source: 'blank', dest: 'volume') need to have non-zero size",
        ),
        (
            {"block_device_mapping_v2": [{**ROOT, "volume_size": "9" * 5000}]},
            "Invalid input for field/attribute volume_size.",
        ),
        (
            {"block_device_mapping_v2": [{**ROOT, "boot_index": "-" + "9" * 5000}]},
            "Block Device Mapping is Invalid: Boot index is invalid.",
        ),
        (
            {"block_device_mapping_v2": [{**ROOT, "disk_bus": "tape"}]},
            "The provided disk bus tape is not valid.",
        ),
        (
            {"block_device_mapping_v2": [{**LOCAL, "disk_bus": "usb"}], "imageRef": IMAGE},
            "Block Device Mapping is invalid: The provided disk bus usb is not valid.",
        ),
        (
            {"block_device_mapping_v2": [{**ROOT, "disk_bus": "ide"}]},
            "can't be on the bus ide: it is on SCSI (virtio-scsi). Leave out disk_bus.",
        ),
        (
            {
                "block_device_mapping_v2": [LOCAL, {**EPHEMERAL, "disk_bus": "sata"}],
                "imageRef": IMAGE,
            },
            "can't be on the bus sata",
        ),
        (
            {"block_device_mapping_v2": [{**ROOT, "device_type": "cdrom"}]},
            "A block device of type cdrom is not supported",
        ),
        (
            {
                "block_device_mapping_v2": [LOCAL, {**DATA, "device_name": "/dev/vda"}],
                "imageRef": IMAGE,
            },
            "The volume cannot be assigned the same device name as the root device vda",
        ),
        (
            {"block_device_mapping_v2": [{**BOOTED, "uuid": BLANK}]},
            f"Block Device {BLANK} is not bootable.",
        ),
        (
            {"block_device_mapping_v2": [{**BOOTED, "uuid": OTHERS}]},
            f"Block Device Mapping is Invalid: failed to get volume {OTHERS}.",
        ),
        (
            {"block_device_mapping_v2": [{**BOOTED, "uuid": "vol-1"}]},
            "Block Device Mapping is Invalid: failed to get volume vol-1.",
        ),
        (
            {"block_device_mapping_v2": [{**ROOT, "uuid": VOLUME}]},
            f"Block Device Mapping is Invalid: failed to get image {VOLUME}.",
        ),
        (
            {
                "block_device_mapping_v2": [
                    {**ROOT, "uuid": ids.named("image", "min8"), "volume_size": 4}
                ]
            },
            "Volume is smaller than the minimum size specified in image metadata. Volume size is "
            f"{4 << 30} bytes, minimum size is {8 << 30} bytes.",
        ),
        (
            {"block_device_mapping_v2": [{**ROOT, "uuid": ids.named("image", "gone")}]},
            "is not active",
        ),
        (
            {"block_device_mapping_v2": [BOOTED], "flavorRef": "poor"},
            "Flavor's memory is too small for requested image.",
        ),
        (
            {"block_device_mapping_v2": [ROOT, {**EPHEMERAL, "volume_size": 1}]},
            "Ephemeral disks requested are larger than the instance type allows.",
        ),
        (
            {
                "block_device_mapping_v2": [ROOT, *[{**EPHEMERAL, "guest_format": "swap"}] * 2],
                "flavorRef": "rich",
            },
            "More than one swap drive requested.",
        ),
        (
            {
                "block_device_mapping_v2": [
                    ROOT,
                    {**EPHEMERAL, "guest_format": "swap", "volume_size": 1024},
                ],
                "flavorRef": "rich",
            },
            "Swap drive requested is larger than instance type allows.",
        ),
        (
            {"block_device_mapping_v2": [ROOT, *[EPHEMERAL] * 4]},
            "You specified more local devices than the limit allows",
        ),
        (
            # The root disk, both of these, and the swap disk of the flavor.
            {
                "block_device_mapping_v2": [LOCAL, *[{**EPHEMERAL, "volume_size": 1}] * 2],
                "imageRef": IMAGE,
                "flavorRef": "rich",
            },
            "You specified more local devices than the limit allows",
        ),
    ],
)
def test_refusals(stocked: ComputeApi, changes: dict[str, Any], message: str) -> None:
    values: dict[str, Any] = {"imageRef": "", "block_device_mapping_v2": [ROOT], **changes}
    for device in values["block_device_mapping_v2"] or ():
        for name in [name for name, value in device.items() if value is None]:
            device.pop(name)
    answer = stocked.request("POST", "/servers", a_create(**values), version="2.96")
    assert answer.status_code == 400, answer.text
    assert message in answer.json["badRequest"]["message"]
    assert stocked.conductor.asked == []


def a_snapshot(name: str, volume_id: str, project: str = "demo") -> Row:
    values = {
        "id": ids.named("snapshot", name),
        "volume_id": volume_id,
        "project_id": project,
        "user_id": project,
        "status": "available",
        "size_gib": 5,
        "meta": {},
        "created_at": NOW,
    }
    return schema.volume_snapshots, values


def test_a_snapshot_as_root_disk_has_what_its_volume_keeps_of_its_image(
    stocked: ComputeApi,
) -> None:
    stocked.add(
        a_snapshot("root", VOLUME), a_snapshot("data", BLANK), a_snapshot("theirs", OTHERS, "x")
    )
    root = {"source_type": "snapshot", "destination_type": "volume", "boot_index": 0}
    request = asked(stocked, [{**root, "uuid": ROOT_SHOT}])
    assert request.volumes == (BlockDevice(snapshot_id=ROOT_SHOT, boot=True),)
    assert request.image_properties == {"os_distro": "debian"}
    assert request.least_memory_mib == 512
    theirs = ids.named("snapshot", "theirs")
    for shot, changes, words in (
        (DATA_SHOT, {}, f"Block Device {BLANK} is not bootable."),
        (theirs, {}, f"Block Device Mapping is Invalid: failed to get snapshot {theirs}."),
        ("x", {}, "Block Device Mapping is Invalid: failed to get snapshot x."),
        (ROOT_SHOT, {"flavorRef": "poor"}, "Flavor's memory is too small for requested image."),
    ):
        devices = [{**root, "uuid": shot}]
        body = a_create(block_device_mapping_v2=devices, imageRef="", **changes)
        answer = stocked.request("POST", "/servers", body, version="2.96")
        assert (answer.status_code, words) == (400, answer.json["badRequest"]["message"])


def test_the_other_name_of_servers(stocked: ComputeApi) -> None:
    other = "/os-volumes_boot"
    body = a_create(block_device_mapping_v2=[ROOT], imageRef="", networks="none")
    made = stocked.request("POST", other, body, version="2.102")
    assert made.status_code == 202, made.text
    assert "/servers/" in made.headers["Location"]
    assert stocked.conductor.asked[-1][1].volume_backed
    stocked.add(a_full_server(1))
    server = f"{other}/{uuid_of(1)}"
    for method, path, sent, status in (
        ("GET", other, None, 200),
        ("GET", f"{other}/detail", None, 200),
        ("GET", server, None, 200),
        ("PUT", server, {"server": {"name": "new"}}, 200),
        ("POST", f"{server}/action", {"os-stop": None}, 202),
        ("POST", f"{server}/action", {"pause": None}, 400),
        ("DELETE", server, None, 204),
    ):
        answer = stocked.request(method, path, sent, version="2.102")
        assert answer.status_code == status, (method, path, answer.text)
        gone = stocked.request(method, path, sent, version="2.103")
        assert gone.status_code == (400 if status == 400 else 404), (method, path)


def test_what_versions_know(stocked: ComputeApi) -> None:
    for version, device, known in (
        ("2.66", {**ROOT, "volume_type": "fast"}, False),
        ("2.67", {**ROOT, "volume_type": "fast"}, True),
        ("2.41", {**ROOT, "tag": "a"}, False),
        ("2.42", {**ROOT, "tag": "a"}, True),
    ):
        body = a_create(block_device_mapping_v2=[device], imageRef="")
        answer = stocked.request("POST", "/servers", body, version=version)
        assert answer.status_code == (202 if known else 400), (version, answer.text)


def test_a_server_from_a_volume_shows_no_image_and_keeps_its_own(make: MakeApi) -> None:
    flavor = {"id": "m1.small", "name": "m1.small", "vcpus": 1, "memory_mib": 2048}
    flavor |= {"disk_gib": 20, "volume_backed": True}
    attached = {
        "id": ids.new_uuid(),
        "volume_id": VOLUME,
        "server_uuid": uuid_of(1),
        "project_id": "demo",
        "status": "attached",
        "slot": 0,
        "mode": "rw",
        "created_at": NOW,
        "delete_on_termination": True,
    }
    api = make(
        a_full_server(1, flavor=flavor, image_id=None),
        a_volume(VOLUME, bootable=True, image_metadata={"image_id": IMAGE}, status="in-use"),
        an_image("other"),
        an_image("large", min_disk_gib=6),
        an_image("rescue", properties={"hw_rescue_bus": "scsi", "hw_rescue_device": "disk"}),
        a_listing("copy"),
        (schema.volume_attachments, attached),
    )
    shown = api.get(f"/servers/{uuid_of(1)}", version="2.96").json["server"]
    assert shown["image"] == ""
    assert shown["flavor"]["disk"] == 20
    assert shown["os-extended-volumes:volumes_attached"] == [
        {"id": VOLUME, "delete_on_termination": True}
    ]
    other, large = ids.named("image", "other"), ids.named("image", "large")
    action = f"/servers/{uuid_of(1)}/action"
    for version, image, words in (
        ("2.92", other, f"Image {other} is unacceptable: Unable to rebuild with a different"),
        ("2.93", large, "Volume size is 5368709120 bytes, minimum size is 6442450944 bytes"),
        ("2.93", ids.new_uuid(), "Cannot find image for rebuild"),
    ):
        answer = api.request("POST", action, {"rebuild": {"imageRef": image}}, version=version)
        assert answer.status_code == 400
        assert words in answer.json["badRequest"]["message"]
    rescue, copy = ids.named("image", "rescue"), ids.named("image", "copy")
    never = f"Instance {uuid_of(1)} cannot be rescued: Cannot rescue a volume-backed instance"
    for version, asked_for, words in (
        ("2.104", None, never),
        ("2.104", {"rescue_image_ref": other}, never),
        ("2.86", {"rescue_image_ref": rescue}, never),
        ("2.104", {"rescue_image_ref": copy}, f"rescue image '{copy}' is not supported"),
    ):
        answer = api.request("POST", action, {"rescue": asked_for}, version=version)
        assert answer.status_code == 400
        assert words in answer.json["badRequest"]["message"]
    answer = api.request("POST", action, {"rescue": {"rescue_image_ref": rescue}}, version="2.87")
    assert answer.status_code == 200, answer.json


def test_an_image_that_was_named_beside_a_boot_volume_is_shown(make: MakeApi) -> None:
    """And is still shown, whatever the volume is rebuilt with; as in Nova."""
    flavor = {"id": "m1.small", "name": "m1.small", "vcpus": 1, "memory_mib": 2048}
    flavor |= {"disk_gib": 20, "volume_backed": True}
    attached = {
        **{"id": ids.new_uuid(), "volume_id": VOLUME, "server_uuid": uuid_of(1), "slot": 0},
        **{"project_id": "demo", "status": "attached", "mode": "rw", "created_at": NOW},
    }
    keeps = {"hw_rescue_bus": "scsi", "hw_rescue_device": "disk"}
    rescue, other = (ids.named("image", name) for name in ("rescue", "other"))
    api = make(
        a_full_server(1, flavor=flavor, image_id=rescue),
        (schema.volume_attachments, attached),
        a_volume(VOLUME, bootable=True, image_metadata={"image_id": other}, status="in-use"),
        an_image("other", min_disk_gib=0),
        *(a_full_server(number, flavor=flavor, image_id=rescue) for number in (2, 3)),
        a_full_server(4),
        an_image("rescue", properties=keeps, min_ram_mib=1024, min_disk_gib=0),
        a_flavor("tiny", memory_mib=512, disk_gib=0),
        a_flavor("fits", memory_mib=1024, disk_gib=0),
    )
    listed = api.get(f"/servers/detail?image={rescue}", version="2.96").json["servers"]
    assert {one["id"] for one in listed} == {uuid_of(number) for number in (1, 2, 3)}
    shown = api.get(f"/servers/{uuid_of(1)}", version="2.96").json["server"]
    assert shown["image"]["id"] == listed[0]["image"]["id"] == rescue
    action = f"/servers/{uuid_of(1)}/action"
    # The volume is of another one, which alone counts before 2.93.
    body = {"rebuild": {"imageRef": rescue}}
    answer = api.request("POST", action, body, version="2.92")
    assert "Unable to rebuild with a different image" in answer.json["badRequest"]["message"]
    body = {"rebuild": {"imageRef": other}}
    answer = api.request("POST", action, body, version="2.92")
    assert answer.status_code == 202, answer.text
    assert answer.json["server"]["image"]["id"] == rescue
    action = f"/servers/{uuid_of(2)}/action"
    answer = api.request("POST", action, {"rescue": None}, version="2.87")
    assert answer.status_code == 200, answer.json
    action = f"/servers/{uuid_of(3)}/action"
    for name, status in (("tiny", 400), ("fits", 202)):
        answer = api.request("POST", action, {"resize": {"flavorRef": name}}, version="2.96")
        assert answer.status_code == status, answer.text


def test_a_resize_leaves_the_memory_that_a_volume_s_image_needs(make: MakeApi) -> None:
    flavor = {"id": "m1.small", "name": "m1.small", "vcpus": 1, "memory_mib": 2048}
    flavor |= {"disk_gib": 20, "volume_backed": True}
    attached = {
        **{"id": ids.new_uuid(), "volume_id": VOLUME, "server_uuid": uuid_of(1), "slot": 0},
        **{"project_id": "demo", "status": "attached", "mode": "rw", "created_at": NOW},
    }
    kept = {"image_id": IMAGE, "min_ram": "1024"}
    api = make(
        a_full_server(1, flavor=flavor, image_id=None),
        a_volume(VOLUME, bootable=True, image_metadata=kept, status="in-use"),
        a_flavor("tiny", memory_mib=512),
        a_flavor("fits", memory_mib=1024),
        (schema.volume_attachments, attached),
    )
    for name, status in (("tiny", 400), ("fits", 202)):
        body = {"resize": {"flavorRef": name}}
        answer = api.request("POST", f"/servers/{uuid_of(1)}/action", body, version="2.96")
        assert answer.status_code == status, answer.text
        if status == 400:
            assert "Flavor's memory is too small" in answer.json["badRequest"]["message"]


def a_listing(name: str, text: str | None = None, **changes: Any) -> Row:
    """An image of a server that boots from a volume, and has another one."""
    listed = [
        {
            "source_type": "snapshot",
            "destination_type": "volume",
            "snapshot_id": shot,
            "volume_size": size,
            "boot_index": index,
            "delete_on_termination": index == 0,
        }
        for shot, size, index in ((ROOT_SHOT, 5, 0), (DATA_SHOT, 2, None))
    ]
    properties = {
        "block_device_mapping": json.dumps(listed) if text is None else text,
        "bdm_v2": "True",
        "root_device_name": "/dev/sda",
        "os_distro": "debian",
    }
    values: dict[str, Any] = {"properties": properties, "locations": {}, "size_bytes": 0}
    values |= {"min_disk_gib": 2, "disk_format": "", "virtual_size_bytes": None}
    return an_image(name, **(values | changes))


def test_an_image_that_lists_snapshots(make: MakeApi) -> None:
    api = make(a_listing("copy"))
    image = ids.named("image", "copy")
    volumes = (
        BlockDevice(size_gib=5, snapshot_id=ROOT_SHOT, boot=True, delete_on_termination=True),
        BlockDevice(size_gib=2, snapshot_id=DATA_SHOT),
    )
    local = {**LOCAL, "uuid": image}
    for devices in ([], [local], [{**ROOT, "uuid": image}]):
        request = asked(api, devices, imageRef=image)
        assert request.volumes == volumes, devices
        assert (request.image_id, request.volume_backed) == (image, True)
        assert request.image_properties == {"os_distro": "debian"}
    request = asked(api, [local, DATA], imageRef=image)
    assert request.volumes == (*volumes, BlockDevice(size_gib=5))


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "{}",
        "[1]",
        '[{"source_type": "snapshot"}]',
        '[{"source_type": "snapshot", "destination_type": "volume", "snapshot_id": 7}]',
        '[{"source_type": "blank", "destination_type": "volume", "volume_size": true}]',
        '[{"source_type": "blank", "destination_type": "volume", "volume_size": -1}]',
        '[{"source_type": "blank", "destination_type": "volume", "boot_index": "0"}]',
        '[{"source_type": "blank", "destination_type": "local"}]',
        '[{"source_type": "blank", "destination_type": "volume", "boot_index": 1}]',
    ],
)
def test_an_image_whose_list_is_wrong(make: MakeApi, text: str) -> None:
    api = make(a_listing("copy", text))
    body = a_create(imageRef=ids.named("image", "copy"))
    answer = api.request("POST", "/servers", body, version="2.96")
    assert answer.status_code == 400, answer.text
    assert answer.json["badRequest"]["message"].startswith("Block Device Mapping is Invalid")
