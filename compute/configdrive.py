"""The config drive: an ISO 9660 image labelled ``config-2`` with OpenStack's metadata files.

Paths and formats are those that cloud-init's ConfigDrive data source reads. The same content
gives the same bytes: all dates in the image are one fixed date.
"""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import pycdlib
from pycdlib.dates import DirectoryRecordDate, VolumeDescriptorDate

from common.errors import Invalid
from common.messages.commands import ConfigDrive

LABEL = "config-2"
VERSIONS = ("2018-08-27", "latest")

_SECTOR = 2048
_FIRST_DESCRIPTOR = 16
_DATE_7 = bytes((100, 1, 1, 0, 0, 0, 0))
_DATE_17 = b"2000010100000000\x00"
_RECORD_DATES = ("access_time", "attribute_change_time", "modification_time", "creation_time")


def files(drive: ConfigDrive) -> dict[str, bytes]:
    """Return path → content. Raises Invalid when the user data isn't base64."""
    documents = {
        "meta_data.json": _json(drive.meta_data),
        "network_data.json": _json(drive.network_data),
        "vendor_data.json": _json(drive.vendor_data),
        "vendor_data2.json": _json({"static": drive.vendor_data} if drive.vendor_data else {}),
    }
    if drive.user_data is not None:
        documents["user_data"] = _decoded(drive.user_data)
    found = {
        f"/openstack/{version}/{name}": content
        for version in VERSIONS
        for name, content in documents.items()
    }
    found["/ec2/latest/meta-data.json"] = _json(_ec2(drive.meta_data))
    if "user_data" in documents:
        found["/ec2/latest/user-data"] = documents["user_data"]
    return found


def image(drive: ConfigDrive) -> bytes:
    """Return the ISO image. Raises Invalid when the user data isn't base64."""
    return _iso(files(drive))


def _json(value: Mapping[str, Any]) -> bytes:
    return orjson.dumps(dict(value), option=orjson.OPT_SORT_KEYS)


def _decoded(user_data: str) -> bytes:
    try:
        return base64.b64decode(user_data, validate=False)
    except (binascii.Error, ValueError) as error:
        raise Invalid("user_data is not base64.") from error


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


def _iso(contents: Mapping[str, bytes]) -> bytes:
    iso = pycdlib.PyCdlib()
    iso.new(interchange_level=4, joliet=3, rock_ridge="1.09", vol_ident=LABEL)
    for folder in sorted({parent for path in contents for parent in _parents(path)}):
        iso.add_directory(folder, rr_name=folder.rsplit("/", 1)[1], joliet_path=folder)
    for path in sorted(contents):
        data = contents[path]
        name = path.rsplit("/", 1)[1]
        iso.add_fp(io.BytesIO(data), len(data), path, rr_name=name, joliet_path=path)
    for descriptor in (iso.pvd, *iso.svds):
        _fix_dates(descriptor)
    out = io.BytesIO()
    iso.write_fp(out)
    descriptors = 1 + len(iso.svds)
    iso.close()
    return _fix_modification_dates(out.getbuffer(), descriptors)


def _parents(path: str) -> Iterator[str]:
    parts = path.split("/")
    for length in range(2, len(parts)):
        yield "/".join(parts[:length])


def _fix_dates(descriptor: Any) -> None:
    descriptor.volume_creation_date = _volume_date()
    descriptor.volume_modification_date = _volume_date()
    descriptor.volume_effective_date = _volume_date()
    pending = [descriptor.root_directory_record()]
    while pending:
        record = pending.pop()
        record.date = _record_date()
        if record.rock_ridge is not None:
            _fix_rock_ridge(record.rock_ridge)
        if record.is_dir():
            dots = (b"\x00", b"\x01")
            for child in record.children:
                if child.file_ident in dots:
                    child.date = _record_date()
                    if child.rock_ridge is not None:
                        _fix_rock_ridge(child.rock_ridge)
                else:
                    pending.append(child)


def _fix_modification_dates(content: memoryview, descriptors: int) -> bytes:
    # The library stamps this one date while it writes (ECMA-119, 8.4.27: byte 831 to 847).
    for number in range(descriptors):
        start = (_FIRST_DESCRIPTOR + number) * _SECTOR + 830
        content[start : start + 17] = _DATE_17
    return bytes(content)


def _fix_rock_ridge(extension: Any) -> None:
    for entries in (extension.dr_entries, extension.ce_entries):
        stamps = None if entries is None else entries.tf_record
        for name in _RECORD_DATES:
            if getattr(stamps, name, None) is not None:
                setattr(stamps, name, _record_date())


def _record_date() -> DirectoryRecordDate:
    date = DirectoryRecordDate()
    date.parse(_DATE_7)
    return date


def _volume_date() -> VolumeDescriptorDate:
    date = VolumeDescriptorDate()
    date.parse(_DATE_17)
    return date
