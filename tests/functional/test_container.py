"""The image, built and used as docs/install.md prints it, where podman can run containers."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from release import archives, chroot, debian
from tests.fixtures.install_page import COMPOSED, IMAGE
from tests.functional.waiting import eventually
from tests.pages import ROOT, block

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

READY_SECONDS = 240
CA = Path("/", chroot.CERTIFICATES)
#: its path in a build: the package of certificates writes its own place
CA_INSIDE = "/run/machine.pem"


class Podman:
    """podman with a store of its own, in which `debian:trixie-slim` is a system of debootstrap."""

    def __init__(self, folder: Path, run: Path) -> None:
        """`run` is of at most 50 characters, as podman wants it."""
        self.folder = folder
        programs = folder / "bin"
        programs.mkdir(parents=True)
        store = f"--root={folder}/store --runroot={run}"
        # runc takes a machine with both versions of control groups, crun doesn't.
        runtime = f"--runtime={shutil.which('runc')}" if shutil.which("runc") else ""
        (programs / "podman").write_text(
            f'#!/bin/sh\nexec {shutil.which("podman")} {store} {runtime} "$@"\n'
        )
        (programs / "podman").chmod(0o755)
        self.path = f"{programs}:{os.environ['PATH']}"

    def shell(self, line: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["bash", "-ec", line],
            cwd=cwd or self.folder,
            env=os.environ | {"PATH": self.path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout


@pytest.fixture
def podman(tmp_path: Path) -> Iterator[Podman]:
    """podman with a base image, and nothing that runs at the end."""
    lacking = [*chroot.missing(), *(["podman"] if shutil.which("podman") is None else [])]
    if lacking:
        pytest.skip(f"needs {', '.join(lacking)}")
    run = Path(tempfile.mkdtemp(prefix="podman-", dir="/run"))
    made = Podman(tmp_path / "podman", run)
    cache = Path(os.environ.get("MICRONOVA_TEST_DEBIANS", debian.CACHE))
    bare = chroot.archive("trixie", (), cache)
    made.shell(f"podman import --quiet {bare} localhost/debian:trixie-slim")
    try:
        made.shell(f"podman run --rm {LIMITS} localhost/debian:trixie-slim true")
    except AssertionError as error:
        pytest.skip(f"podman runs no containers here: {str(error)[-300:]}")
    yield made
    made.shell("podman rm --all --force")
    # podman mounts its store upon itself; what is mounted can't be removed
    store = made.folder / "store" / "overlay"
    if store.is_mount():
        made.shell(f"umount {store}")
    shutil.rmtree(run)


#: a machine may allow less than podman asks for
LIMITS = "--network host --ulimit nofile=4096:4096 --ulimit nproc=4096:4096"


def test_the_image_as_the_page_prints_it(podman: Podman, tmp_path: Path) -> None:
    place = tmp_path / "tree"
    subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(place)], check=True)
    archives.make(place, place / "dist")
    shutil.copy(place / "etc" / "constraints.txt", place / "dist")
    build, start, create = block(*IMAGE).splitlines()
    # the machine's own way to packages, as the page says
    (tmp_path / "pip.conf").write_text(f"[global]\ncert = {CA_INSIDE}\n")
    ours = f"--isolation chroot --network host --secret id=pip.conf,src={tmp_path}/pip.conf "
    ours += f"--volume {CA}:{CA_INSIDE}:ro --build-arg BASE=localhost/debian:trixie-slim"
    podman.shell(build.replace("podman build", f"podman build {ours}"), place)
    publish = "--publish 127.0.0.1:8774-8777:8774-8777"
    assert publish in start
    podman.shell(start.replace(publish, LIMITS), place)
    eventually(lambda: "The cloud is up." in podman.shell("podman logs cloud"), READY_SECONDS)
    # the image's own check; it fails where it says no
    podman.shell("podman healthcheck run cloud")
    assert "ACTIVE" in podman.shell(create)
    inside = podman.shell("podman exec cloud sh -c 'id -u; touch /opt/x 2>&1; cat /proc/1/status'")
    assert inside.startswith("8774\n")
    assert "Read-only file system" in inside
    assert "CapEff:\t0000000000000000" in inside
    podman.shell("podman stop --time 60 cloud")
    assert podman.shell("podman inspect --format '{{.State.ExitCode}}' cloud").strip() == "0"


def test_compose_reads_the_files_of_services(tmp_path: Path) -> None:
    """Compose itself, of a clean Debian: it needs no daemon to read a file and fill it in."""
    if lacking := chroot.missing():
        pytest.skip(f"needs {', '.join(lacking)}")
    cache = Path(os.environ.get("MICRONOVA_TEST_DEBIANS", debian.CACHE))
    make_secrets = block(*COMPOSED).splitlines()[0]
    with chroot.Chroot.of(chroot.archive("trixie", (), cache)) as machine:
        machine.run("apt-get", "update")
        words = ("install", "--yes", "--no-install-recommends", "docker-compose", "openssl")
        machine.run("apt-get", *words)
        place = machine.root / "root"
        for name in ("compose.yaml", "compose.services.yaml"):
            shutil.copy(ROOT / "containers" / name, place)
        read = "docker-compose --file compose.services.yaml config"
        said = machine.run("bash", "-ec", f"cd /root; {read} --quiet", check=False)
        assert (said.returncode != 0, "see docs/install.md" in said.stdout) == (True, True)
        shown = machine.run("bash", "-ec", f"cd /root; {make_secrets}\n{read}").stdout
        assert "rabbit://micronova:" in shown
        assert "${" not in shown
        services = machine.run("bash", "-ec", f"cd /root; {read} --services").stdout.split()
        assert {"public-2", "mq3", "conductor-2"} <= set(services)
        machine.run("bash", "-ec", "cd /root; docker-compose --file compose.yaml config --quiet")
