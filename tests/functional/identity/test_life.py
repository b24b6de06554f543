"""Keystone's process and folder over several starts, and what ends it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from keystoneauth1.identity.v3 import Password
from keystoneauth1.session import Session

from identity.errors import KeystoneFailed, PortBusy
from identity.keystone import Keystone
from identity.layout import Endpoint, catalog
from identity.passwords import load_passwords
from tests.functional.keystone_fixture import access_of

BASE = "http://127.0.0.1:8774"


@pytest.fixture(scope="module")
def state_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder prepared once, for the tests of this file in their order."""
    folder = tmp_path_factory.mktemp("life")
    server = Keystone(folder, port=0)
    server.listen()
    server.prepare(catalog(server.auth_url, BASE), load_passwords(folder), lambda step: None)
    server.stop()
    return folder


@contextlib.contextmanager
def started(server: Keystone) -> Iterator[None]:
    server.start()
    try:
        server.wait_ready(60)
        yield
    finally:
        server.stop()


def session(server: Keystone, password: str) -> Session:
    return Session(
        Password(
            auth_url=server.auth_url,
            username="demo",
            password=password,
            project_name="demo",
            user_domain_name="Default",
            project_domain_name="Default",
        )
    )


def urls(server: Keystone, password: str) -> set[str | None]:
    client = session(server, password)
    return set(access_of(client).service_catalog.get_urls())


def test_a_later_start_updates_endpoints_and_finds_the_rest(state_dir: Path) -> None:
    """Another port and base URL, and a password given by hand, are all made true."""
    server = Keystone(state_dir, port=0)
    server.listen()
    passwords = load_passwords(state_dir, {"demo": "given by hand"})
    endpoints = catalog(server.auth_url, "https://cloud.example:8443/")
    steps: list[str] = []
    assert server.prepare(endpoints, passwords, steps.append)
    assert "loading Keystone" in steps
    assert not server.prepare(endpoints, passwords, steps.append)
    with started(server):
        assert urls(server, "given by hand") == {endpoint.url for endpoint in endpoints}


def test_a_start_cut_short_is_made_again(state_dir: Path) -> None:
    """Without the marker nothing there is used: not a torn database, not half of the keys."""
    folder = state_dir / "keystone"
    (folder / "complete").unlink()
    (folder / "keystone.db").write_bytes(b"torn")
    (folder / "fernet-keys" / "0").unlink()
    server = Keystone(state_dir, port=0)
    server.listen()
    passwords = load_passwords(state_dir)
    assert server.prepare(catalog(server.auth_url, BASE), passwords, lambda step: None)
    with started(server):
        assert f"{BASE}/placement" in urls(server, passwords["demo"])


def test_an_interrupted_preparation_may_be_repeated(tmp_path: Path) -> None:
    """The child is ended with the preparation, and the next one starts from nothing."""
    server = Keystone(tmp_path, port=0)
    server.listen()
    job = catalog(server.auth_url, BASE), load_passwords(tmp_path)

    def interrupt(step: str) -> None:
        if step == "creating roles, projects and users":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        server.prepare(*job, interrupt)
    assert (tmp_path / "keystone" / "keystone.db").exists()
    assert server.prepare(*job, lambda step: None)
    assert not server.prepare(*job, lambda step: None)
    server.stop()


def test_a_failed_preparation_names_step_and_log(tmp_path: Path) -> None:
    """Keystone refuses a service type of 300 letters."""
    server = Keystone(tmp_path, port=0)
    server.listen()
    try:
        job = (*catalog(server.auth_url, BASE), Endpoint("x" * 300, "too long", "http://x"))
        with pytest.raises(KeystoneFailed, match=r"while creating the catalog; see .*\.log\.$"):
            server.prepare(job, load_passwords(tmp_path), lambda step: None)
        assert not (tmp_path / "keystone" / "complete").exists()
    finally:
        server.stop()


_PREPARING_PARENT = """
import os, signal, sys
from pathlib import Path
from identity.keystone import Keystone
from identity.layout import catalog
from identity.passwords import load_passwords
folder = Path(sys.argv[1])
server = Keystone(folder, port=0)
server.listen()
def die(step):
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    print(children, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
server.prepare(catalog(server.auth_url, "http://x"), load_passwords(folder), die)
"""


def test_a_preparation_dies_with_its_parent(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _PREPARING_PARENT, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert _ended_or_gone(pid)
    assert not (tmp_path / "keystone" / "complete").exists()


def test_the_server_may_be_started_again(state_dir: Path) -> None:
    """A killed server comes back at the same port, and requests wait for it."""
    server = Keystone(state_dir, port=0)
    server.listen()
    passwords = load_passwords(state_dir)
    server.prepare(catalog(server.auth_url, BASE), passwords, lambda step: None)
    with started(server):
        first = server.pid
        assert first is not None
        os.killpg(first, signal.SIGKILL)
        assert _ended(first)
        assert server.pid is None
        server.start()
        assert server.pid != first
        assert session(server, passwords["demo"]).get_token()
    assert server.pid is None


def test_a_busy_port_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortBusy, match=rf"^Port {port} on 127\.0\.0\.1, .* in use") as caught:
            Keystone(tmp_path, port=port).listen()
    assert caught.value.details == {"host": "127.0.0.1", "port": port}


def test_a_server_that_cannot_start_says_so(tmp_path: Path) -> None:
    """An empty folder has no configuration: the server ends, and the log is named."""
    (tmp_path / "keystone").mkdir()
    (tmp_path / "keystone" / "keystone.conf").write_text("[DEFAULT\n")
    (tmp_path / "log").mkdir()
    server = Keystone(tmp_path, port=0)
    server.start()
    try:
        with pytest.raises(KeystoneFailed, match=r"ended while it started; see .*keystone\.log"):
            server.wait_ready(60)
    finally:
        server.stop()


_PARENT = """
import sys
from pathlib import Path
from identity.keystone import Keystone
server = Keystone(Path(sys.argv[1]), port=0)
server.start()
server.wait_ready(60)
print(server.pid, flush=True)
sys.stdin.read()
"""


def test_keystone_dies_with_its_parent(state_dir: Path) -> None:
    """Server and worker end, also when the parent is killed."""
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(state_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        watched = [os.pidfd_open(one) for one in (pid, *map(int, children))]
        assert len(watched) == 2
        try:
            parent.kill()
            for each in watched:
                assert select.select([each], [], [], 30)[0], "Keystone outlived its parent"
        finally:
            for each in watched:
                os.close(each)


def _ended_or_gone(pid: int) -> bool:
    try:
        return _ended(pid)
    except ProcessLookupError:
        return True


def _ended(pid: int) -> bool:
    """Return whether the child `pid` ends within some seconds, without reaping it."""
    watch = os.pidfd_open(pid)
    try:
        return bool(select.select([watch], [], [], 10)[0])
    finally:
        os.close(watch)
