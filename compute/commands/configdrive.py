"""The config drive: an ISO 9660 image labelled ``config-2`` with OpenStack's metadata files.

Paths and formats are those that cloud-init's ConfigDrive data source reads. The same content
gives the same bytes but for its random seed.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from common.errors import Invalid
from common.messages.commands import ConfigDrive, GuestFile

LABEL = "config-2"
VERSIONS = ("2018-08-27", "latest")
#: as many as Nova gives
SEED_BYTES = 512


def files(drive: ConfigDrive, seed: bytes) -> dict[str, bytes]:
    """Return path → content. Raises Invalid when the user data, or a file, isn't base64.

    ``seed``: random bytes, from which the guest's own generator begins.
    """
    random_seed = base64.b64encode(seed).decode()
    documents = {
        "meta_data.json": _json(
            {**drive.meta_data, "random_seed": random_seed, **_listed(drive.files)}
        ),
        "network_data.json": _json(drive.network_data),
        "vendor_data.json": _json(drive.vendor_data),
        "vendor_data2.json": _json({"static": drive.vendor_data} if drive.vendor_data else {}),
    }
    if drive.user_data is not None:
        documents["user_data"] = _decoded(drive.user_data, "user_data")
    found = {
        f"/openstack/{version}/{name}": content
        for version in VERSIONS
        for name, content in documents.items()
    }
    found["/ec2/latest/meta-data.json"] = _json(_ec2(drive.meta_data))
    for number, file in enumerate(drive.files):
        found[f"/openstack/{_content_path(number)}"] = _decoded(file.contents, file.path)
    if "user_data" in documents:
        found["/ec2/latest/user-data"] = documents["user_data"]
    return found


def image(drive: ConfigDrive) -> bytes:
    """Return the ISO image. Raises Invalid when the user data isn't base64."""
    from compute.commands import (
        iso,  # a library of 2 MiB, which agents without a hypervisor don't need
    )

    return iso.image(LABEL, files(drive, os.urandom(SEED_BYTES)))


def _json(value: Mapping[str, Any]) -> bytes:
    return orjson.dumps(dict(value), option=orjson.OPT_SORT_KEYS)


def _listed(files: Sequence[GuestFile]) -> dict[str, Any]:
    """Return the metadata that says where the guest writes which content; none without files."""
    listed = [
        {"path": file.path, "content_path": f"/{_content_path(number)}"}
        for number, file in enumerate(files)
    ]
    return {"files": listed} if listed else {}


def _content_path(number: int) -> str:
    return f"content/{number:04}"


def _decoded(text: str, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=False)
    except (binascii.Error, ValueError) as error:
        raise Invalid(f"{name} is not base64.") from error


def _ec2(meta_data: Mapping[str, Any]) -> dict[str, Any]:
    keys = meta_data.get("public_keys") or {}
    found = {
        "instance-id": meta_data.get("uuid", ""),
        "local-hostname": meta_data.get("hostname", ""),
        "hostname": meta_data.get("hostname", ""),
    }
    if keys:
        found["public-keys"] = {
            str(number): {"openssh-key": key} for number, key in enumerate(keys.values())
        }
    return found
