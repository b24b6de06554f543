"""Clean Debian systems in folders: made by debootstrap, kept as archives, used by chroot."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("debootstrap", "unshare", "tar")
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
_PASSED_ON = ("PIP_", "SOURCE_DATE_EPOCH", "MICRONOVA_", "http_proxy", "https_proxy", "no_proxy")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# What is mounted in the program's own namespace ends with it.
_ENTER = """
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
exec chroot "$0" "$@"
"""


def missing() -> list[str]:
    """Return what this machine lacks to make and use one."""
    lacking = [name for name in PROGRAMS if shutil.which(name) is None]
    return lacking + ([] if os.geteuid() == 0 else ["root"])


def archive(suite: str, packages: Sequence[str], cache: Path) -> Path:
    """Return a tar of a minimal system with some packages, which is made at the first use."""
    kept = cache / f"{'-'.join([suite, *packages])}.tar"
    if kept.exists():
        return kept
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="micronova-chroot-") as folder:
        root = Path(folder) / "root"
        words = ["debootstrap", "--variant=minbase"]
        words += [f"--include={','.join(packages)}"] if packages else []
        run([*words, suite, str(root)])
        # Whole, or not at all: several processes may do this at once.
        with tempfile.NamedTemporaryFile(dir=cache, delete=False) as part:
            run(["tar", "--create", "--one-file-system", f"--directory={root}", "."], part.name)
        Path(part.name).replace(kept)
    return kept


def run(words: Sequence[str], output: str | None = None) -> None:
    """Run a program; its standard output is written to a file where one is named."""
    if output is not None:
        words = [words[0], f"--file={output}", *words[1:]]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


@dataclass(frozen=True)
class Chroot:
    """A system in a folder of this machine."""

    root: Path

    @classmethod
    @contextlib.contextmanager
    def of(cls, kept: Path) -> Iterator[Chroot]:
        """Unpack an archive to a folder that ends with the context; the net is this machine's."""
        with tempfile.TemporaryDirectory(prefix="micronova-chroot-") as folder:
            root = Path(folder) / "root"
            root.mkdir()
            run(["tar", "--extract", f"--file={kept}", f"--directory={root}", "--numeric-owner"])
            shutil.copy("/etc/resolv.conf", root / "etc" / "resolv.conf")
            yield cls(root)

    def trust(self) -> None:
        """Have it trust whom this machine trusts."""
        if Path("/", CERTIFICATES).exists():
            shutil.copy(Path("/", CERTIFICATES), self.root / CERTIFICATES)

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a program in it, as the first process of its own; nothing it starts outlives it."""
        environment = {
            name: value for name, value in os.environ.items() if name.startswith(_PASSED_ON)
        }
        environment.pop("PIP_FIND_LINKS", None)  # a folder of this machine
        environment.pop("PIP_CONSTRAINT", None)  # so is this
        environment |= {"PATH": _PATH, "LANG": "C.UTF-8", "HOME": "/root"}
        environment["DEBIAN_FRONTEND"] = "noninteractive"
        done = subprocess.run(
            [
                *("unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child"),
                *("sh", "-ec", _ENTER, str(self.root), *words),
            ],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.returncode}\n{done.stdout[-4000:]}")
        return done
