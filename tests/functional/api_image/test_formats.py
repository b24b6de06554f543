"""What is sent as an image, in the forms that programs write, and forms that deceive QEMU."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import shutil
import struct
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from api.image.data import formats
from common.errors import Invalid, MicronovaError
from web.errors import UnsupportedMedia

MIB = 1 << 20
RAW = (b"\xeb\x63\x90" + bytes(range(256)) * 4096).ljust(4 * MIB, b"\0")

pytestmark = pytest.mark.skipif(shutil.which("qemu-img") is None, reason="needs qemu-img")


def size_of(data: bytes, disk_format: str, piece: int = 1 << 16) -> int:
    """The size of the disk that is found in what arrives in pieces."""
    pieces = (data[at : at + piece] for at in range(0, len(data), piece))
    inspected = formats.Inspected(pieces)
    assert b"".join(inspected) == data
    return formats.virtual_size(io.BytesIO(data), len(data), disk_format, inspected, "i")


class Img:
    """qemu-img in a folder that has a raw disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "base.raw").write_bytes(RAW)

    def __call__(self, *arguments: str) -> None:
        subprocess.run(["qemu-img", *arguments], check=True, cwd=self.folder, capture_output=True)

    def made(self, form: str, options: str = "") -> bytes:
        more = ("-o", options) if options else ()
        self("convert", "-O", form, *more, "base.raw", "made")
        return (self.folder / "made").read_bytes()


@pytest.fixture
def img(tmp_path: Path) -> Img:
    return Img(tmp_path)


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("qcow2", "compat=0.10"),
        ("qcow2", "compat=1.1,lazy_refcounts=on,extended_l2=on,cluster_size=32k"),
        ("qcow2", "compression_type=zstd"),
        ("qcow2", "cluster_size=512"),
        ("raw", ""),
        ("vmdk", "subformat=streamOptimized"),
        ("vmdk", "subformat=monolithicSparse"),
    ],
)
@pytest.mark.parametrize("piece", [1000, MIB])
def test_what_programs_write_has_its_size(img: Img, form: str, options: str, piece: int) -> None:
    assert size_of(img.made(form, options), form, piece) == len(RAW)


@pytest.mark.parametrize(
    ("form", "options", "name"),
    [
        ("vpc", "", "vhd"),
        ("vpc", "subformat=fixed", "vhd"),
        ("vhdx", "", "vhdx"),
        ("vdi", "", "vdi"),
        ("qed", "", "qed"),
        ("qcow", "", "qcow2"),
        ("vmdk", "subformat=monolithicSparse", "vmdk"),
        ("parallels", "", "a Parallels image"),
    ],
)
def test_another_format_is_named_and_the_advice_works(
    img: Img, form: str, options: str, name: str
) -> None:
    data = img.made(form, options)
    for asked in ("raw", "iso"):
        with pytest.raises(UnsupportedMedia, match=f"it is {name}, not {asked}\\. ") as refused:
            size_of(data, asked)
    if name not in {"qcow2", "vmdk"}:
        command = refused.value.message.rpartition(": qemu-img ")[2]
        img(*command.rstrip(".").replace("FILE", "made").split())
        converted = (img.folder / "disk.qcow2").read_bytes()
        assert size_of(converted, "qcow2") >= len(RAW)


def test_a_disk_with_partitions_is_named_as_the_format_that_it_can_have() -> None:
    partitions = b"\x80" + bytes(3) + b"\x83" + bytes(59) + b"\x55\xaa"
    disk = bytes(446) + partitions + bytes(MIB)
    cd = (disk[: 16 * 2048] + b"\x01CD001\x01").ljust(MIB, b"\0")
    for data, name in ((disk, "raw"), (cd, "iso")):
        assert size_of(data, name) == len(data)
        for asked in ("qcow2", "vmdk"):
            with pytest.raises(UnsupportedMedia, match=f"it is {name}, not {asked}") as refused:
                size_of(data, asked)
            assert refused.value.message.endswith(f". Set disk_format to {name}.")


def _tar(data: bytes) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        member = tarfile.TarInfo("disk.vmdk")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return held.getvalue()


@pytest.mark.parametrize(
    ("pack", "name", "suffix"),
    [
        (lzma.compress, "xz", ".xz"),
        (gzip.compress, "gzip", ".gz"),
        (bz2.compress, "bzip2", ".bz2"),
        (_tar, "ova or tar", ".ova"),
    ],
)
def test_what_is_packed_is_named_and_the_advice_works(
    img: Img, pack: Callable[[bytes], bytes], name: str, suffix: str
) -> None:
    packed = img.folder / f"disk.vmdk{suffix}"
    packed.write_bytes(pack(img.made("vmdk", "subformat=streamOptimized")))
    for asked in ("raw", "qcow2", "vmdk", "iso"):
        with pytest.raises(UnsupportedMedia, match=f"it is {name}, not {asked}") as refused:
            size_of(packed.read_bytes(), asked)
    command = refused.value.message.rpartition(": ")[2].rstrip(".").replace("FILE", packed.name)
    subprocess.run(command.split(), check=True, cwd=img.folder)
    assert size_of((img.folder / "disk.vmdk").read_bytes(), "vmdk") == len(RAW)


def test_what_is_no_disk_or_locked_is_refused() -> None:
    with pytest.raises(UnsupportedMedia, match="it is luks, not raw"):
        size_of(b"LUKS\xba\xbe\0\x01" + bytes(MIB), "raw")
    for text in (b"<!DOCTYPE html><html>Not found</html>", b'<?xml version="1.0"?><Envelope/>'):
        with pytest.raises(UnsupportedMedia, match="Send a disk image"):
            size_of(text + b"\n" * 600, "raw")
    with pytest.raises(Invalid, match="no data"):
        size_of(b"", "raw")


def _changed(data: bytes, position: int, form: str, value: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(form, changed, position, value)
    return bytes(changed)


def test_qcow2_that_names_others_or_has_no_size_is_refused(img: Img) -> None:
    data = img.made("qcow2", "compat=1.1,cluster_size=64k")
    assert size_of(data, "qcow2") == len(RAW)
    for position, form, value, why in (
        (4, ">I", 1, "version 1"),
        (8, ">Q", 4000, "backing file"),
        (20, ">I", 40, "2\\^40 bytes"),
        (24, ">Q", 0, "no bytes"),
        (24, ">Q", (1 << 63) + 5, "bytes"),
        (32, ">I", 1, "encrypted"),
        (32, ">I", 2, "encrypted"),
        (72, ">Q", 4, "data file"),
        (72, ">Q", 32, "not known"),
        (100, ">I", 40, "header"),
        (100, ">I", 1 << 20, "header"),
        (104 + 8, ">I", 0x44415441, "data file"),
        (104 + 8, ">I", 0x0537BE77, "encrypted"),
    ):
        with pytest.raises(Invalid, match=why):
            size_of(_changed(data, position, form, value), "qcow2")
    with pytest.raises(UnsupportedMedia, match="it is qcow2"):
        size_of(_changed(data, 510, "<H", 0xAA55), "raw")


#: (position, form, value) in the header of a qcow2 image
IN_TABLES = (
    *((40, ">Q", value) for value in (12345, 1 << 30, 1 << 63, 65536 * 9)),
    *((48, ">Q", value) for value in (777, 1 << 30, (1 << 63) + 65536)),
    *((36, ">I", value) for value in (1, 2, (4 << 20) + 1, 1 << 31)),
    *((56, ">I", value) for value in (1, 128, 129, 1 << 31)),
    *((60, ">I", value) for value in (65_537, 1 << 31)),
    *((96, ">I", value) for value in (4, 7, 99)),
    *((104, "B", value) for value in (0, 1, 2)),
    *((72, ">Q", value) for value in (1, 2, 3, 8, 16)),
)


@pytest.mark.parametrize("cluster_size", ["64k", "4k"])
@pytest.mark.parametrize("cut", [0, 100_000])
def test_a_qcow2_that_qemu_does_not_open_is_refused(img: Img, cluster_size: str, cut: int) -> None:
    """And none else."""
    whole = img.made("qcow2", f"compat=1.1,cluster_size={cluster_size}")
    refused = 0
    for position, form, value in IN_TABLES:
        data = _changed(whole, position, form, value)[: cut or None]
        (img.folder / "changed").write_bytes(data)
        command = ["qemu-img", "info", "-f", "qcow2", "changed"]
        done = subprocess.run(command, check=False, cwd=img.folder, capture_output=True)
        if not done.returncode:
            assert size_of(data, "qcow2") == len(RAW), (position, value)
            continue
        refused += 1
        with pytest.raises(Invalid, match="contradicts itself"):
            size_of(data, "qcow2")
    assert refused > len(IN_TABLES) // 3


def test_a_qcow2_that_qemu_imports_is_taken(img: Img) -> None:
    """It reads zeros behind the end of a file, and leaves alone what a writer would mend."""
    whole = img.made("qcow2", "compat=1.1")
    for data in (whole[:100_000], whole[:512], *(_changed(whole, 72, ">Q", n) for n in (1, 2, 3))):
        (img.folder / "taken").write_bytes(data)
        assert size_of(data, "qcow2") == len(RAW)
        img("convert", "-f", "qcow2", "-O", "raw", "taken", "out")
        assert (img.folder / "out").stat().st_size == len(RAW)


# --- VMDK

HEAD = "# Disk DescriptorFile\nversion=1\nCID=fffffffe\nparentCID=ffffffff\n"
SPARSE = 'createType="monolithicSparse"\n'
OWN = 'RW 8192 SPARSE "disk.vmdk"\n'
REST = '\nddb.virtualHWVersion = "4"\nddb.geometry.cylinders = "16"\n'


def vmdk(
    text: str = HEAD + SPARSE + OWN + REST,
    *,
    capacity: int = 8192,
    sectors: int = 20,
    at_sector: int = 1,
    fill: bytes = b"\0",
    rest: bytes = bytes(65536),
    directory: int = 26,
) -> bytes:
    head = bytearray(512)
    head[0:4] = b"KDMV"
    struct.pack_into("<IIQQQQ", head, 4, 1, 3, capacity, 128, at_sector, sectors)
    struct.pack_into("<IQQ", head, 44, 512, 0, directory)
    return bytes(head) + text.encode().ljust(sectors * 512 if fill else 0, fill or b"\0") + rest


FLAT = 'createType="monolithicFlat"\nRW 8192 FLAT "/etc/hostname" 0\n'
VARIANTS = {
    "flat": vmdk(HEAD + FLAT, capacity=0),
    "flat with a capacity": vmdk(HEAD + FLAT),
    "odd quote": vmdk(
        HEAD + 'createType=xmonolithicFlat"\ncreateType="streamOptimized"\nRW 1 FLAT "x" 0\n',
        capacity=0,
    ),
    "odd quote with a capacity": vmdk(HEAD + 'createType=xmonolithicFlat"\n' + SPARSE + OWN),
    "in a comment": vmdk(HEAD + '# createType="monolithicFlat"\n' + SPARSE + OWN),
    "beside a file here": vmdk(HEAD + SPARSE + 'RW 8192 FLAT "other.raw" 0\n'),
    "capacity 0 alone": vmdk(capacity=0),
    "parent": vmdk(HEAD + 'parentFileNameHint="/etc/hostname"\n' + SPARSE + OWN),
    "parent in a comment": vmdk(HEAD + '# parentFileNameHint="/etc/hostname"\n' + SPARSE + OWN),
    "parent in the data base": vmdk(
        HEAD + SPARSE + OWN + 'ddb.comment = "parentFileNameHint=/etc/hostname"\n'
    ),
    "parent by number": vmdk(HEAD.replace("ffffffff", "12345678") + SPARSE + OWN),
    "parent after the length": vmdk(
        HEAD + SPARSE + OWN,
        sectors=1,
        fill=b"\n",
        rest=b'parentFileNameHint="/etc/hostname"\n' + bytes(65536),
    ),
    "two extents": vmdk(HEAD + SPARSE + OWN + OWN.replace("disk", "other")),
    "no extent": vmdk(HEAD + SPARSE),
    "a path": vmdk(HEAD + SPARSE + 'RW 8192 SPARSE "../x.vmdk"\n'),
    "a path of Windows": vmdk(HEAD + SPARSE + 'RW 8192 SPARSE "c:\\x.vmdk"\n'),
    "a protocol": vmdk(HEAD + SPARSE + 'RW 8192 SPARSE "nbd:host:1"\n'),
    "tabs": vmdk(HEAD + SPARSE + 'RW\t8192\tFLAT\t"hostname"\t0\n'),
    "CRLF": vmdk((HEAD + 'createType="vmfs"\nRW 1 VMFS "x"\n').replace("\n", "\r\n")),
    "CR alone": vmdk(HEAD + SPARSE + OWN.replace("\n", "\r") + 'RW 1 FLAT "x" 0\n'),
    "two gigabytes": vmdk(HEAD + SPARSE.replace("monolithicSparse", "twoGbMaxExtentSparse") + OWN),
    "vmfs": vmdk(HEAD + 'createType="vmfsSparse"\nRW 1 VMFSSPARSE "x"\n'),
    "elsewhere": vmdk(at_sector=2),
    "nowhere": vmdk(at_sector=0),
    "longer than QEMU reads": vmdk(sectors=1 << 40, fill=b""),
    "no type": vmdk(HEAD + OWN),
    "other letters": vmdk(HEAD + SPARSE.replace("createType", "CreateType") + OWN),
    "text": (HEAD + FLAT).encode() + bytes(512),
    "cut off": vmdk()[:300],
    "footer that is none": vmdk(directory=2**64 - 1),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_vmdk_that_names_another_file_is_refused(name: str) -> None:
    for piece in (777, MIB):
        with pytest.raises((Invalid, UnsupportedMedia)):
            size_of(VARIANTS[name], "vmdk", piece)
        with pytest.raises(MicronovaError):
            size_of(VARIANTS[name], "raw", piece)


def test_a_vmdk_that_stands_for_itself_is_taken() -> None:
    assert size_of(vmdk(), "vmdk") == 8192 * 512
    assert size_of(vmdk((HEAD + SPARSE + OWN + REST).replace("\n", "\r\n")), "vmdk") == 8192 * 512


def test_the_footer_of_a_vmdk_says_the_same_size(img: Img) -> None:
    data = img.made("vmdk", "subformat=streamOptimized")
    footer = len(data) - 1024
    if data[footer : footer + 4] != b"KDMV":
        # This QEMU writes none: as VMware's programs do.
        head = bytearray(data[:512])
        struct.pack_into("<Q", head, 56, 2**64 - 1)
        marker = struct.pack("<QII", 1, 0, 3).ljust(512, b"\0")
        data = bytes(head) + data[512:] + marker + data[:512] + bytes(512)
        footer = len(data) - 1024
    assert size_of(data, "vmdk") == len(RAW)
    larger = _changed(data, footer + 12, "<Q", 20 << 21)
    with pytest.raises(Invalid, match="another size"):
        size_of(larger, "vmdk")
    # QEMU looks for it at the end of the last whole sector.
    with pytest.raises(Invalid):
        size_of(larger + data[footer - 512 :] + b"\0", "vmdk")


def test_an_iso_image_may_be_a_disk(tmp_path: Path) -> None:
    if shutil.which("genisoimage") is None:
        pytest.skip("needs genisoimage")
    (tmp_path / "file").write_bytes(os.urandom(100_000))
    command = ["genisoimage", "-quiet", "-o", "cd.iso", "-V", "TEST", "file"]
    subprocess.run(command, check=True, cwd=tmp_path)
    plain = (tmp_path / "cd.iso").read_bytes()
    hybrid = _changed(_changed(plain, 510, "<H", 0xAA55), 446, "B", 0x80)
    for data in (plain, hybrid):
        assert size_of(data, "iso") == size_of(data, "raw") == len(data)
        for asked in ("qcow2", "vmdk"):
            with pytest.raises(UnsupportedMedia, match=f"iso, not {asked}"):
                size_of(data, asked)
    with pytest.raises(UnsupportedMedia, match="it is qcow2"):
        size_of(b"QFI\xfb" + hybrid[4:], "iso")
