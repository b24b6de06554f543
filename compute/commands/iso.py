"""ISO 9660 images. The same files give the same bytes: all dates are one fixed date."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

import pycdlib
from pycdlib.dates import DirectoryRecordDate, VolumeDescriptorDate

_SECTOR = 2048
_FIRST_DESCRIPTOR = 16
_DATE_7 = bytes((100, 1, 1, 0, 0, 0, 0))
_DATE_17 = b"2000010100000000\x00"
_RECORD_DATES = ("access_time", "attribute_change_time", "modification_time", "creation_time")


def image(label: str, contents: Mapping[str, bytes]) -> bytes:
    """Return the image that holds these files, {path: content}."""
    iso = pycdlib.PyCdlib()
    iso.new(interchange_level=4, joliet=3, rock_ridge="1.09", vol_ident=label)
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
