"""`POST …/upload`: a multipart body read as a stream; the fields come first, in order."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

from simulator.api.storage.content import check_name
from simulator.engine import Sleep, Work
from simulator.errors import PveError
from simulator.request.call import Call
from simulator.state.model import MIB, Storage, Volume
from simulator.state.tasks import Job
from simulator.state.volumes import format_of, path_of

KEPT_BYTES = MIB
CHUNK = 256 * 1024
COPY_BYTES_PER_SECOND = 500_000_000
ALGORITHMS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")
_ORDER = ("content", "checksum-algorithm", "checksum")


class MalformedUpload(PveError):
    """The body is no valid upload: 400 without a body."""

    def __init__(self) -> None:
        super().__init__("Bad Request", 400, body=False)


@dataclass
class Spooled:
    """What is kept of an upload."""

    fields: dict[str, str] = field(default_factory=dict)
    filename: str = ""
    size: int = 0
    head: bytes = b""
    digest: str = ""
    sha256: str = ""


def read_multipart(stream: IO[bytes], content_type: str) -> Spooled:
    """Read a form whose file part is the last. Raises MalformedUpload for anything else."""
    match = re.search(r'boundary="?([^";,]+)"?', content_type)
    if match is None:
        raise MalformedUpload
    boundary = b"--" + match.group(1).encode()
    spooled, buffer = Spooled(), _Buffer(stream)
    if buffer.line() != boundary:
        raise MalformedUpload
    while not spooled.filename:
        name, filename = _part_headers(buffer)
        if filename is not None:
            spooled.filename = filename
            _read_file(buffer, boundary, spooled)
        else:
            _next_field(spooled, name, buffer.until(b"\r\n" + boundary).decode())
            if buffer.line() == b"--":
                break
    return spooled


def _next_field(spooled: Spooled, name: str, value: str) -> None:
    expected = [one for one in _ORDER if one not in spooled.fields]
    seen = [one for one in _ORDER if one in spooled.fields]
    if name not in expected or any(_ORDER.index(name) < _ORDER.index(one) for one in seen):
        raise MalformedUpload
    spooled.fields[name] = value.strip()


def _part_headers(buffer: _Buffer) -> tuple[str, str | None]:
    name, filename = "", None
    while line := buffer.line():
        header, _colon, value = line.decode("utf-8", "replace").partition(":")
        if header.lower() == "content-disposition":
            found = dict(re.findall(r'(\w+\*?)="([^"]*)"', value))
            name, filename = found.get("name", ""), found.get("filename")
    return name, filename


def _read_file(buffer: _Buffer, boundary: bytes, spooled: Spooled) -> None:
    algorithm = spooled.fields.get("checksum-algorithm", "sha256")
    if algorithm not in ALGORITHMS:
        raise MalformedUpload
    digest, sha256 = hashlib.new(algorithm), hashlib.sha256()
    head = bytearray()
    for chunk in buffer.chunks_until(b"\r\n" + boundary):
        digest.update(chunk)
        sha256.update(chunk)
        spooled.size += len(chunk)
        if len(head) < KEPT_BYTES:
            head += chunk[: KEPT_BYTES - len(head)]
    spooled.head, spooled.digest = bytes(head), digest.hexdigest()
    spooled.sha256 = sha256.hexdigest()


class _Buffer:
    """Splits a stream into lines and delimited runs of bytes."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._held = bytearray()

    def _more(self) -> None:
        chunk = self._stream.read(CHUNK)
        if not chunk:
            raise MalformedUpload
        self._held += chunk

    def line(self) -> bytes:
        while (end := self._held.find(b"\r\n")) < 0:
            if bytes(self._held) in (b"--", b"--\r"):
                return b"--"
            self._more()
        found = bytes(self._held[:end])
        del self._held[: end + 2]
        return found

    def until(self, mark: bytes) -> bytes:
        return b"".join(self.chunks_until(mark))

    def chunks_until(self, mark: bytes) -> Iterator[bytes]:
        while (end := self._held.find(mark)) < 0:
            ready = len(self._held) - len(mark)
            if ready > 0:
                yield bytes(self._held[:ready])
                del self._held[:ready]
            self._more()
        yield bytes(self._held[:end])
        del self._held[: end + len(mark)]


def upload(call: Call) -> str:
    """Store an uploaded file; one of the same name is replaced silently."""
    spooled: Spooled = call.extra["spooled"]
    content, name = call.get("content"), spooled.filename
    check_name(call, content, name)
    storage = call.cluster.enabled_storage(call.get("storage"), call.node)
    return call.start("imgcopy", "", lambda job: _copy(call, job, storage, spooled))


def _copy(call: Call, job: Job, storage: Storage, spooled: Spooled) -> Work:
    content, name, node = call.get("content"), spooled.filename, call.node
    spool = f"/var/tmp/pveupload-{secrets.token_hex(16)}"  # noqa: S108 - only printed
    target = path_of(storage, f"{content}/{name}")
    job.log(f"starting file import from: {spool}")
    virtual = _virtual_size(job, content, name, spooled, spool)
    expected = call.get("checksum").lower()
    if expected:
        if spooled.digest != expected:
            job.log("calculating checksum...")
            raise PveError(f"checksum mismatch: got '{spooled.digest}' != expect '{expected}'")
        job.log("calculating checksum...OK, checksum verified")
    job.log(f"target node: {node}")
    job.log(f"target file: {target}")
    job.log(f"file size is: {spooled.size}")
    job.log(f"command: cp -- {spool} {target}")
    yield Sleep(0.1 + spooled.size / COPY_BYTES_PER_SECOND)
    place = call.cluster.place(storage.id, node)
    if call.cluster.used(storage, node) + spooled.size > storage.capacity:
        job.log(f"cp: error writing '{target}': No space left on device")
        raise PveError(f"command 'cp -- {spool} {target}' failed: exit code 1")
    old = call.cluster.volumes.get(place, f"{content}/{name}")
    if old is not None:
        call.cluster.remove_volume(old)
    volume = call.cluster.add_volume(
        Volume(
            *place,
            f"{content}/{name}",
            content,
            format_of(name),
            spooled.size,
            spooled.size,
            virtual_size=virtual,
            ctime=int(time.time()),
            checksum=spooled.sha256,
        )
    )
    if content == "iso" and spooled.size <= KEPT_BYTES:
        call.cluster.keep_data(volume, spooled.head)
    job.log("finished file import successfully")


def _virtual_size(job: Job, content: str, name: str, spooled: Spooled, spool: str) -> int:
    """Return an image's virtual size, as qemu-img does. Raises if it is no image."""
    if content != "import" or not name.lower().endswith(".qcow2"):
        return 0
    head = spooled.head
    if head[:4] != b"QFI\xfb" or len(head) < 32:
        job.log(
            f"command '/usr/bin/qemu-img info '--output=json' {spool} -f qcow2' failed: "
            "exit code 1"
        )
        raise PveError(f"qemu-img: Could not open '{spool}': Image is not in qcow2 format")
    return int.from_bytes(head[24:32], "big")
