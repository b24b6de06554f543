"""Clean Debian systems in folders: made by debootstrap, kept as archives, used by chroot."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

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
# Its systemd is the first process of a container: it sees no device and no control group but its
# own, and its kernel's settings only to read.
_BOOT = """
mount --bind "$0" "$0"
mount -t proc proc "$0/proc"
mount --bind "$0/proc/sys" "$0/proc/sys"
mount -o remount,bind,ro "$0/proc/sys"
mount --rbind /sys "$0/sys"
mount -o remount,bind,ro "$0/sys"
mount -t cgroup2 cgroup2 "$0/sys/fs/cgroup"
mount -t tmpfs tmpfs "$0/run"
mount -t tmpfs -o mode=755 tmpfs "$0/dev"
mkdir "$0/dev/pts" "$0/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$0/dev/pts"
mount -t tmpfs tmpfs "$0/dev/shm"
ln -s pts/ptmx "$0/dev/ptmx"
ln -s /proc/self/fd "$0/dev/fd"
for one in null zero full random urandom tty; do
    touch "$0/dev/$one"; mount --bind "/dev/$one" "$0/dev/$one"
done
exec env -i container=other PATH="$PATH" chroot "$0" /lib/systemd/systemd --log-target=null
"""
#: units that are about the machine, which isn't the container's
_MASKED = (
    *("getty.target", "console-getty.service", "systemd-logind.service", "apt-daily.timer"),
    *("apt-daily-upgrade.timer", "systemd-networkd.service", "systemd-resolved.service"),
    *("systemd-timesyncd.service", "systemd-udevd.service", "systemd-sysctl.service"),
    *("systemd-modules-load.service", "e2scrub_reap.service"),
)
_SPACES = ("--mount", "--pid", "--ipc", "--uts", "--cgroup")
_BOOT_SECONDS = 120.0


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
        spaces = ("--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child")
        return _done(["unshare", *spaces, "sh", "-ec", _ENTER, str(self.root), *words], check)

    @contextlib.contextmanager
    def booted(self) -> Iterator[Booted]:
        """Run its systemd until the context ends. Raises RuntimeError where this machine refuses
        that: it takes a second version of control groups, and all namespaces."""
        for name in _MASKED:
            unit = self.root / "etc/systemd/system" / name
            unit.unlink(missing_ok=True)
            unit.symlink_to("/dev/null")
        with _control_group() as group, tempfile.TemporaryFile() as said:
            words = ["unshare", *_SPACES, "--fork", "--kill-child"]
            first = subprocess.Popen(
                [*words, "sh", "-ec", _BOOT, str(self.root)],
                env={"PATH": _PATH},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                preexec_fn=lambda: (group / "cgroup.procs").write_text("0"),  # noqa: PLW1509
            )
            try:
                yield Booted(_systemd(first, said))
            finally:
                first.kill()
                first.wait()


@dataclass(frozen=True)
class Booted:
    """A system whose systemd runs."""

    pid: int

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a program in it, beside its services."""
        target = ("nsenter", f"--target={self.pid}", *_SPACES, "--root", "env", "--chdir=/")
        return _done([*target, *words], check)


def _systemd(first: subprocess.Popen[bytes], said: IO[bytes]) -> int:
    """Return the process ID of systemd once it has started all that is enabled."""
    until = time.monotonic() + _BOOT_SECONDS
    children = Path(f"/proc/{first.pid}/task/{first.pid}/children")
    while first.poll() is None and time.monotonic() < until:
        found = children.read_text().split()
        if found:
            state = Booted(int(found[0])).run("systemctl", "is-system-running", check=False)
            if state.stdout.strip() in ("running", "degraded"):
                return int(found[0])
        time.sleep(0.5)
    said.seek(0)
    raise RuntimeError(f"systemd doesn't run here: {said.read().decode(errors='replace')[-2000:]}")


@contextlib.contextmanager
def _control_group() -> Iterator[Path]:
    """Make a control group of the second version, which ends with the context."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    top = next((Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"), None)
    if top is None:
        raise RuntimeError("systemd doesn't run here: there are no control groups of version 2")
    made = Path(tempfile.mkdtemp(prefix="micronova-", dir=top))
    try:
        yield made
    finally:
        for folder in sorted(made.rglob("*/"), reverse=True):
            with contextlib.suppress(OSError):
                folder.rmdir()
        with contextlib.suppress(OSError):
            made.rmdir()


def _done(words: Sequence[str], check: bool) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if name.startswith(_PASSED_ON)
    }
    environment.pop("PIP_FIND_LINKS", None)  # a folder of this machine
    environment.pop("PIP_CONSTRAINT", None)  # so is this
    environment |= {"PATH": _PATH, "LANG": "C.UTF-8", "HOME": "/root"}
    environment["DEBIAN_FRONTEND"] = "noninteractive"
    done = subprocess.run(
        words,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.returncode}\n{done.stdout[-20_000:]}")
    return done
