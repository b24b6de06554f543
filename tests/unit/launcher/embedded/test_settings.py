"""The configuration that `micronova up` makes."""

from __future__ import annotations

import configparser
import itertools
from pathlib import Path

import pytest

from launcher.embedded.hypervisors import real_clusters, simulator_arguments
from launcher.embedded.settings import Sections, Settings, render, sections
from tests.fixtures import null

CREDENTIALS = {
    "auth_type": "password",
    "auth_url": "http://127.0.0.1:1/v3",
    "password": "a$b",
    "region_name": "north",
}


def settings(**changes: object) -> Settings:
    values: dict[str, object] = {
        "state_dir": Path("/state"),
        "host": "127.0.0.1",
        "port": 8774,
        "nodes": 3,
        "clusters": 1,
        "driver": "proxmox",
        "speed": 10.0,
    }
    return Settings(**values | changes)  # type: ignore[arg-type]


def made(given: Settings, driver: Sections | None = None) -> Sections:
    base, console = "http://127.0.0.1:8774", "http://127.0.0.1:8776"
    return sections(given, base, console, CREDENTIALS, driver or {}, 3, 8777)


def test_the_file_is_read_back_as_it_was_meant() -> None:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(render(made(settings())))
    assert parser["placement"]["endpoint_override"] == "http://127.0.0.1:8774/placement"
    assert parser["keystone_authtoken"]["password"] == "a$$b"  # as oslo.config writes a$b
    assert parser["DEFAULT"]["transport_url"] == "micronova-local://embedded"


def test_the_apis_database_is_the_conductors() -> None:
    database = made(settings())["database"]
    assert database["connection"] == database["reader_connection"]
    assert database["connection"] == "sqlite:////state/cloud.sqlite"


@pytest.mark.parametrize(
    ("given", "simulated", "subnets"),
    [
        (settings(), True, 1),
        (settings(bridges=2), True, 2),
        (settings(driver=null.DRIVER), False, 1),
        (settings(proxmox=("https://pve:8006",), token_file=Path("/t")), False, 0),
    ],
)
def test_subnets_are_made_up_where_bridges_are(
    given: Settings, simulated: bool, subnets: int
) -> None:
    assert given.simulated is simulated
    text = made(given).get("networks", {}).get("subnets", "")
    assert len([one for one in text.split(",") if one]) == subnets


def test_a_real_cluster_is_named_once_and_for_all() -> None:
    found = real_clusters(
        settings(proxmox=("https://a:8006", "https://b:8006"), token_file=Path("/t"))
    )
    assert found["proxmox"] == {"clusters": "proxmox"}
    assert found["proxmox:proxmox"] == {
        "endpoints": "https://a:8006,https://b:8006",
        "token_file": "/t",
    }


def test_the_simulator_is_given_its_size() -> None:
    words = simulator_arguments(settings(nodes=5, clusters=2, bridges=3, speed=2.5), Path("/s"))
    pairs = dict(itertools.pairwise(words))
    assert (pairs["--nodes"], pairs["--clusters"], pairs["--speed"]) == ("5", "2", "2.5")
    assert pairs["--bridges"] == "3"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:1"),
        ("0.0.0.0", "http://127.0.0.1:1"),
        ("::1", "http://[::1]:1"),
        ("cloud.example", "http://cloud.example:1"),
    ],
)
def test_clients_are_given_an_address_that_works(host: str, url: str) -> None:
    assert settings(host=host).url(1) == url


def test_the_console_proxy_is_found_by_browsers_and_agents() -> None:
    assert made(settings())["console"] == {
        "novnc_url": "http://127.0.0.1:8776/vnc_auto.html",
        "serial_url": "ws://127.0.0.1:8776/",
        "relay_url": "ws://127.0.0.1:8776/relay",
    }
