"""What disks ``micronova server create`` asks for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.fixtures.sdk import FakeConnection, FakeProxy, run

CREATE = ("server", "create", "--flavor", "small", "--no-network", "web")
ROOT = {"destination_type": "volume", "boot_index": 0, "delete_on_termination": False}
LOCAL = {"source_type": "blank", "destination_type": "local", "boot_index": -1}
SCRATCH = {**LOCAL, "delete_on_termination": True}
LOCAL_ROOT = {**SCRATCH, "uuid": "i1", "source_type": "image", "boot_index": 0}


def a_cloud() -> FakeConnection:
    """A cloud with a thing of each kind, which refuses the server that is asked for."""

    def found(uuid: str) -> Any:
        return lambda *_, **__: SimpleNamespace(id=uuid, name=uuid)

    return FakeConnection(
        FakeProxy(find_flavor=found("f1"), create_server=RuntimeError("refused")),
        FakeProxy(find_image=found("i1")),
        block_storage=FakeProxy(find_volume=found("v1"), find_snapshot=found("s1")),
    )


@pytest.mark.parametrize(
    ("options", "image", "devices"),
    [
        (["--image", "debian"], "i1", None),
        (["--volume", "data"], None, [{"uuid": "v1", "source_type": "volume", **ROOT}]),
        (
            ["--snapshot", "nightly", "--delete-on-termination"],
            None,
            [{"uuid": "s1", "source_type": "snapshot", **ROOT, "delete_on_termination": True}],
        ),
        (
            ["--image", "debian", "--boot-from-volume", "20"],
            None,
            [{"uuid": "i1", "source_type": "image", **ROOT, "volume_size": 20}],
        ),
        (
            ["--image", "debian", "--ephemeral", "size=20,format=ext4", "--swap", "512"],
            "i1",
            [
                LOCAL_ROOT,
                {**SCRATCH, "volume_size": 20, "guest_format": "ext4"},
                {**SCRATCH, "volume_size": 512, "guest_format": "swap"},
            ],
        ),
        (
            ["--block-device", "uuid=v9,source_type=volume,boot_index=0,tag=root"],
            None,
            [
                {
                    "source_type": "volume",
                    "destination_type": "volume",
                    "uuid": "v9",
                    "boot_index": 0,
                    "tag": "root",
                }
            ],
        ),
        (
            ["--image", "debian", "--block-device", "destination_type=volume,volume_size=5"],
            "i1",
            [
                LOCAL_ROOT,
                {"source_type": "blank", "destination_type": "volume", "volume_size": 5},
            ],
        ),
        (
            ["--volume", "data", "--block-device", "volume_size=5,delete_on_termination=False"],
            None,
            [
                {"uuid": "v1", "source_type": "volume", **ROOT},
                {
                    "source_type": "blank",
                    "destination_type": "local",
                    "volume_size": 5,
                    "delete_on_termination": False,
                },
            ],
        ),
    ],
)
def test_what_is_asked_for(options: list[str], image: str | None, devices: Any) -> None:
    connection = a_cloud()
    run(connection, *CREATE, *options)
    [(_, sent)] = connection.compute.called("create_server")
    assert (sent.get("image_id"), sent.get("block_device_mapping")) == (image, devices)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([], "Nothing to boot from"),
        (["--block-device", "uuid=v1,source_type=volume"], "Nothing to boot from"),
        (["--image", "debian", "--volume", "data"], "not allowed with"),
        (["--volume", "data", "--boot-from-volume", "5"], "requires --image"),
        (["--image", "debian", "--delete-on-termination"], "requires a volume to boot from"),
        (["--image", "debian", "--block-device", "size=5"], "'size=5' is none of uuid"),
        (["--image", "debian", "--block-device", "source_type=volume"], "and uuid with each"),
        (["--image", "debian", "--block-device", "uuid=v1"], "source_type is needed"),
        (["--image", "debian", "--block-device", "volume_size=x"], "can't be read"),
        (["--image", "debian", "--ephemeral", "format=ext4"], "size is needed"),
        (["--image", "debian", "--swap", "much"], "invalid swap value"),
    ],
)
def test_what_is_refused(options: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    connection = a_cloud()
    ran = run(connection, *CREATE, *options)
    assert ran.code != 0
    assert why in ran.err + capsys.readouterr().err
    assert connection.compute.called("create_server") == []
