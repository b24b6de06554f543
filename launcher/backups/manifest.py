"""What a backup says about itself; it is written last, so a backup without it is unfinished."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from common.errors import ConfigurationError

NAME = "manifest.json"
FORMAT = 1
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Manifest:
    """One backup."""

    made_at: str
    """UTC, ISO 8601: when its first database was dumped."""
    release: str
    """The release of micronova that made it."""
    cloud_id: str
    epoch: int
    """How far the record was."""
    revisions: Mapping[str, str]
    """Database → the revision of its schema."""
    files: Mapping[str, str]
    """File → SHA-256 of its content."""
    format: int = FORMAT


def write(folder: Path, manifest: Manifest) -> None:
    """Write it, completely or not at all."""
    made = folder / f"{NAME}.new"
    made.write_text(json.dumps(asdict(manifest), indent=2) + "\n", encoding="utf-8")
    made.chmod(0o600)
    made.replace(folder / NAME)


def read(folder: Path) -> Manifest:
    """Return the manifest of a whole, unchanged backup. Raises ConfigurationError."""
    file = folder / NAME
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        found = Manifest(**values)
    except FileNotFoundError as error:
        raise ConfigurationError(f"{folder} is no complete backup: it has no {NAME}.") from error
    except (OSError, ValueError, TypeError) as error:
        raise ConfigurationError(f"{file} can't be read: {error}.") from error
    if found.format != FORMAT:
        raise ConfigurationError(f"{file} is of format {found.format}, not {FORMAT}.")
    for name, digest in found.files.items():
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ConfigurationError(f"{file} names {name}, outside of the backup.")
        if not (folder / name).is_file():
            raise ConfigurationError(f"The backup lacks its file {name}.")
        if sha256(folder / name) != digest:
            raise ConfigurationError(f"{folder / name} is not what was written: its sum differs.")
    return found


def sha256(file: Path) -> str:
    """Return the SHA-256 of a file."""
    total = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            total.update(chunk)
    return total.hexdigest()


def files(folder: Path) -> Iterator[str]:
    """Yield the names of all files below a folder, but the manifest."""
    for file in sorted(folder.rglob("*")):
        name = str(file.relative_to(folder))
        if file.is_file() and name not in (NAME, f"{NAME}.new"):
            yield name
