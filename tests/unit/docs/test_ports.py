"""The drawing and the table of the ports where each process listens: they are the defaults."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from common.config import load
from common.metrics.config import PORTS as METRICS
from compute.hypervisor.proxmox.settings import DEFAULT_PORT as PROXMOX
from console import config as console_config
from launcher.quickstart.machine import Ports

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/least-privilege.md").read_text(encoding="utf-8")
DRAWING, FIREWALL = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
CONSOLE = load([console_config.register]).console.port
OURS = {
    "api": Ports.public,
    "placement": Ports.placement,
    "dashboard": Ports.dashboard,
    "console": CONSOLE,
}
#: of the programs that are used, by their names in the table
OTHERS = {"PostgreSQL": 5432, "RabbitMQ": 5671, "memcached": 11211, "Keystone": 5000}
HTTPS = 443


def row(process: str) -> list[str]:
    """The cells of a process in the first table."""
    line = next(one for one in PAGE.splitlines() if re.match(rf"\| `?{process}`?[ |]", one))
    return [cell.strip() for cell in line.strip("| ").split(" | ")]


def numbers(text: str) -> set[int]:
    return {int(found) for found in re.findall(r"\b\d{3,5}\b", text)}


@pytest.mark.parametrize(("process", "port"), [*OURS.items(), *OTHERS.items()])
def test_the_table_has_the_ports_by_default(process: str, port: int) -> None:
    assert int(row(process)[1].split()[0]) == port


@pytest.mark.parametrize("process", ["conductor", "scheduler", "compute"])
def test_who_listens_nowhere(process: str) -> None:
    assert row(process)[1:3] == ["nothing", "nobody"]


def test_the_drawing_has_these_ports_and_no_others() -> None:
    ports = {*OURS.values(), *OTHERS.values(), PROXMOX, HTTPS}
    ports |= {METRICS["api"], METRICS["placement"]}
    assert numbers(DRAWING) == ports


def test_an_arrow_has_the_port_of_what_it_points_to() -> None:
    lines = DRAWING.splitlines()
    boxes = next(number for number, line in enumerate(lines) if "+- console proxy -" in line)
    found = {}
    ports = [int(port) for port in re.findall(r"\d+", lines[boxes - 2])]
    arrows = [one.start() for one in re.finditer("v", lines[boxes - 1])]
    for port, column in zip(ports, arrows, strict=True):
        drawn = re.finditer(r"\+- (\w+)[ \w]* -+\+", lines[boxes])
        [name] = [box[1] for box in drawn if box.start() < column < box.end()]
        found[name] = port
    assert found == OURS


def test_the_firewall_admits_these_ports() -> None:
    admitted = {*map(int, re.findall(r"dport (\d+) accept", FIREWALL))}
    assert admitted == {Ports.public, Ports.placement}
    [(least, most)] = re.findall(r"dport (\d+)-(\d+) accept", FIREWALL)
    assert all(int(least) <= port <= int(most) for port in METRICS.values())


@pytest.mark.parametrize(
    ("unit", "port"),
    [("micronova-api@", Ports.public), ("micronova-dashboard", Ports.dashboard)],
)
def test_the_units_listen_there(unit: str, port: int) -> None:
    text = (ROOT / f"etc/systemd/{unit}.service").read_text(encoding="utf-8")
    assert f"MICRONOVA_BIND=127.0.0.1:{port} " in text


def test_a_balancer_asks_there() -> None:
    text = (ROOT / "etc/haproxy/haproxy.cfg").read_text(encoding="utf-8")
    found = {
        (int(port), int(check)) for port, check in re.findall(r":(\d+) check port (\d+)", text)
    }
    assert found == {
        (Ports.public, METRICS["api"]),
        (Ports.placement, METRICS["placement"]),
    } | {pair for pair in found if pair[0] == Ports.dashboard}
