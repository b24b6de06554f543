"""How many consoles a worker opens, and that both ends are closed where one is missing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from oslo_config import cfg

pytest.importorskip("websockets")

from websockets.sync.server import Server, ServerConnection, serve

from common import clock, config
from common.errors import Conflict, Unavailable
from common.messages.commands import Build, Placed
from common.messages.consoles import (
    ConsoleTarget,
    ConsoleType,
)
from common.messages.questions import OpenConsole
from common.messages.reports import Built, Category
from common.resources.states import ResourceType
from compute import config as compute_config
from compute.hypervisor.port import HypervisorError
from compute.observed.console_logs import ConsoleLogs
from compute.observed.consoles import Consoles


class Guest:
    """A console that says one thing, and echoes."""

    def __init__(self) -> None:
        self._said = [b"hello"]
        self._ready = threading.Condition()
        self.closed = False

    def receive(self) -> bytes | None:
        with self._ready:
            self._ready.wait_for(lambda: self._said or self.closed, 10)
            return self._said.pop(0) if self._said else None

    def send(self, content: bytes) -> None:
        with self._ready:
            self._said.append(content)
            self._ready.notify_all()

    def close(self) -> None:
        with self._ready:
            self.closed = True
            self._ready.notify_all()


class Driver:
    """Opens guests, or refuses."""

    has_consoles = True

    def __init__(self, error: HypervisorError | None = None) -> None:
        self.guests: list[Guest] = []
        self._error = error

    def open_console(self, target: ConsoleTarget) -> Guest:
        if self._error is not None:
            raise self._error
        self.guests.append(Guest())
        return self.guests[-1]


class Front:
    """A console proxy's port: holds the connections of agents."""

    def __init__(self) -> None:
        self.grants: list[str | None] = []
        self.first: list[bytes] = []
        self.leave = threading.Event()
        self._server: Server = serve(self._handle, "127.0.0.1", 0, compression=None)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        port = self._server.socket.getsockname()[1]
        self.url = f"ws://127.0.0.1:{port}/relay"

    def _handle(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        self.grants.append(connection.request.headers.get("Authorization"))
        content = connection.recv()
        assert isinstance(content, bytes)
        self.first.append(content)
        self.leave.wait(60)

    def close(self) -> None:
        self.leave.set()
        self._server.shutdown()
        self._thread.join()


@pytest.fixture
def front() -> Iterator[Front]:
    made = Front()
    yield made
    made.close()


@pytest.fixture
def conf() -> cfg.ConfigOpts:
    made = config.load([compute_config.register])
    made.set_override("consoles", 2, group="compute")
    made.set_override("consoles_of_server", 1, group="compute")
    return made


def order(front: Front, server: str = "s1") -> OpenConsole:
    target = ConsoleTarget(server, ConsoleType.SERIAL, "w1", "c1", "pve1", 100)
    return OpenConsole(target, front.url, "a-grant")


def opened(consoles: Consoles, driver: Any, asked: OpenConsole) -> None:
    consoles.open(driver, asked)


def eventually(check: Any) -> None:
    for _ in range(500):
        if check():
            return
        threading.Event().wait(0.01)
    raise AssertionError("never")


def test_what_the_guest_says_reaches_the_proxy(conf: cfg.ConfigOpts, front: Front) -> None:
    consoles, driver = Consoles(conf, ConsoleLogs(conf, {}, "w1")), Driver()
    opened(consoles, driver, order(front))
    eventually(lambda: front.first == [b"hello"])
    assert front.grants == ["Bearer a-grant"]
    consoles.stop()
    assert driver.guests[0].closed


def test_limits_and_that_places_are_given_back(conf: cfg.ConfigOpts, front: Front) -> None:
    consoles, driver = Consoles(conf, ConsoleLogs(conf, {}, "w1")), Driver()
    opened(consoles, driver, order(front, "s1"))
    with pytest.raises(Conflict, match="Server s1 has 1 console open"):
        opened(consoles, driver, order(front, "s1"))
    opened(consoles, driver, order(front, "s2"))
    with pytest.raises(Conflict, match="This worker has 2 consoles open"):
        opened(consoles, driver, order(front, "s3"))
    front.leave.set()
    eventually(lambda: all(guest.closed for guest in driver.guests))

    def fits() -> bool:
        try:
            opened(consoles, driver, order(front, "s1"))
        except Conflict:
            return False
        return True

    eventually(fits)
    consoles.stop()


def test_a_vm_without_a_console_takes_no_place(conf: cfg.ConfigOpts, front: Front) -> None:
    consoles = Consoles(conf, ConsoleLogs(conf, {}, "w1"))
    driver = Driver(HypervisorError(Category.NODE_UNHEALTHY, "it doesn't run"))
    for _ in range(3):
        with pytest.raises(Unavailable):
            opened(consoles, driver, order(front))


def test_a_proxy_that_is_away_closes_the_guest(conf: cfg.ConfigOpts, front: Front) -> None:
    consoles, driver = Consoles(conf, ConsoleLogs(conf, {}, "w1")), Driver()
    front.close()
    with pytest.raises(Unavailable):
        opened(consoles, driver, order(front))
    assert driver.guests[0].closed


def a_build(server: str = "s1") -> Build:
    return Build(
        1, 1, ResourceType.SERVER, server, Placed("pve1", "c1", "pve1", 100), clock.after(60)
    )


def test_what_a_boot_says_is_kept(conf: cfg.ConfigOpts) -> None:
    conf.set_override("console_log_kib", 1, group="compute")
    driver: Any = Driver()
    logs = ConsoleLogs(conf, {"c1": driver}, "w1")
    assert logs.text("s1") == ""
    logs.after(a_build(), Built(False))
    logs.after(a_build(), Built(True))
    eventually(lambda: logs.text("s1") == "hello")
    driver.guests[0].send(b"x" * 2000)
    eventually(lambda: logs.text("s1") == "x" * 1024)
    logs.let_go("s1")
    eventually(lambda: driver.guests[0].closed)
    assert logs.text("s1") == "x" * 1024
    # Another boot begins a new log.
    logs.after(a_build(), Built(True))
    eventually(lambda: logs.text("s1") == "hello")
    logs.stop()
    eventually(lambda: driver.guests[1].closed)


def test_no_more_lines_are_read_than_allowed(conf: cfg.ConfigOpts) -> None:
    conf.set_override("console_log_kib", 1, group="compute")
    conf.set_override("console_log_lines", 1, group="compute")
    driver: Any = Driver()
    logs = ConsoleLogs(conf, {"c1": driver}, "w1")
    logs.after(a_build("s1"), Built(True))
    eventually(lambda: logs.text("s1") == "hello")
    logs.after(a_build("s2"), Built(True))
    threading.Event().wait(0.05)
    assert (len(driver.guests), logs.text("s2")) == (1, "")
    logs.stop()


def test_by_default_64_kib_are_kept(conf: cfg.ConfigOpts) -> None:
    driver: Any = Driver()
    logs = ConsoleLogs(conf, {"c1": driver}, "w1")
    logs.after(a_build(), Built(True))
    eventually(lambda: logs.text("s1") == "hello")
    logs.keep("s1", b"x" * (65 << 10))
    assert len(logs.text("s1") or "") == 64 << 10
    logs.stop()


@pytest.mark.parametrize(("kib", "able"), [(0, True), (64, False)])
def test_nothing_is_kept_where_it_is_off_or_there_are_no_consoles(
    conf: cfg.ConfigOpts, kib: int, able: bool
) -> None:
    conf.set_override("console_log_kib", kib, group="compute")
    driver: Any = Driver()
    driver.has_consoles = able
    logs = ConsoleLogs(conf, {"c1": driver}, "w1")
    logs.after(a_build(), Built(True))
    logs.keep("s1", b"x")
    assert (logs.text("s1"), driver.guests) == (None, [])


def test_a_users_console_takes_the_line_over_and_is_kept(
    conf: cfg.ConfigOpts, front: Front
) -> None:
    conf.set_override("console_log_kib", 1, group="compute")
    driver: Any = Driver()
    logs = ConsoleLogs(conf, {"c1": driver}, "w1")
    logs.after(a_build(), Built(True))
    eventually(lambda: logs.text("s1") == "hello")
    consoles = Consoles(conf, logs)
    opened(consoles, driver, order(front))
    eventually(lambda: driver.guests[0].closed)
    eventually(lambda: logs.text("s1") == "hellohello")
    consoles.stop()
