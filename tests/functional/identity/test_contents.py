"""What is in a prepared Keystone, asked over its API."""

from __future__ import annotations

import contextlib
import sqlite3
import stat
import subprocess
import sys
from urllib.parse import urlsplit

import pytest
import yaml
from keystoneauth1.access import AccessInfoV3
from openstack import connection
from openstack.config import OpenStackConfig

from identity.layout import INTERFACES, REGION
from identity.passwords import USERS
from tests.functional.keystone_fixture import RunningKeystone, access_of

ROLES = {
    ("admin", "admin"): {"admin", "manager", "member", "reader"},
    ("admin", "demo"): {"admin", "manager", "member", "reader"},
    ("demo", "demo"): {"member", "reader"},
    ("demo-reader", "demo"): {"reader"},
    ("micronova", "service"): {"admin", "manager", "member", "reader", "service"},
}


@pytest.mark.parametrize(("user", "project"), ROLES)
def test_roles(keystone: RunningKeystone, user: str, project: str) -> None:
    session = keystone.session(user, project)
    access = access_of(session)
    assert set(access.role_names or ()) == ROLES[user, project]
    assert (access.username, access.project_name) == (user, project)


def test_system_scope(keystone: RunningKeystone) -> None:
    session = keystone.system_session()
    access = access_of(session)
    assert isinstance(access, AccessInfoV3)
    assert access.system == {"all": True}


@pytest.mark.parametrize("interface", INTERFACES)
def test_catalog(keystone: RunningKeystone, interface: str) -> None:
    session = keystone.session()
    services = access_of(session).service_catalog
    found = services.get_urls(interface=interface, region_name=REGION)
    base = keystone.base_url
    assert set(found) == {
        keystone.auth_url.removesuffix("/v3"),
        f"{base}/compute/v2.1",
        f"{base}/placement",
        f"{base}/image",
        f"{base}/network",
        f"{base}/volume/v3",
        f"{base}/clustering",
    }


def test_projects(keystone: RunningKeystone) -> None:
    session = keystone.session("admin", "admin")
    answer = session.get(f"{keystone.auth_url}/projects").json()
    assert {project["name"] for project in answer["projects"]} == {"admin", "demo", "service"}


def test_hashes_cost_little_where_the_passwords_are_random(keystone: RunningKeystone) -> None:
    """A password that somebody chose is hashed at Keystone's own cost."""
    session = keystone.session("admin", "admin")
    body = {"user": {"name": "somebody", "password": "of their own"}}
    made = session.post(f"{keystone.auth_url}/users", json=body).json()["user"]
    try:
        costs = dict(sqlite_rows(keystone, _COSTS))
    finally:
        session.delete(f"{keystone.auth_url}/users/{made['id']}")
    assert costs == dict.fromkeys(USERS, "04") | {"somebody": "12"}


_COSTS = """
    SELECT local_user.name, substr(password.password_hash, 5, 2)
    FROM password JOIN local_user ON local_user.id = password.local_user_id
"""


def sqlite_rows(keystone: RunningKeystone, query: str) -> list[tuple[str, str]]:
    with contextlib.closing(
        sqlite3.connect(keystone.state_dir / "keystone" / "keystone.db")
    ) as connection:
        return connection.execute(query).fetchall()


def test_version_document_has_the_public_url(keystone: RunningKeystone) -> None:
    answer = keystone.session().get(keystone.auth_url, authenticated=False).json()
    links = [urlsplit(link["href"]) for link in answer["version"]["links"]]
    assert {link.port for link in links} == {keystone.server.port}


@pytest.mark.parametrize("cloud", ["micronova", "micronova-admin", "micronova-demo"])
def test_sdk_logs_in_with_the_client_file(keystone: RunningKeystone, cloud: str) -> None:
    path = keystone.state_dir / "clouds.yaml"
    config = OpenStackConfig(
        config_files=[str(path)],
        secure_files=[],
        vendor_files=[],
        load_envvars=False,
        load_yaml_config=True,
    )
    with connection.Connection(config=config.get_one(cloud)) as cloud_connection:
        assert cloud_connection.authorize()
        wanted = yaml.safe_load(path.read_text())["clouds"][cloud]["auth"]["project_name"]
        assert cloud_connection.current_project.name == wanted


def test_only_the_owner_reads_what_is_written(keystone: RunningKeystone) -> None:
    modes = {
        str(path.relative_to(keystone.state_dir)): stat.S_IMODE(path.stat().st_mode)
        for path in keystone.state_dir.rglob("*")
        if path.is_file()
    }
    assert set(modes.values()) == {0o600}
    assert {"clouds.yaml", "openrc", "secrets.json", "keystone/keystone.conf"} <= set(modes)


def test_no_password_in_the_log_or_on_a_command_line(keystone: RunningKeystone) -> None:
    log = keystone.server.log_path.read_text()
    with open(f"/proc/{keystone.server.pid}/cmdline", "rb") as stream:
        command = stream.read().decode()
    with open(f"/proc/{keystone.server.pid}/environ", "rb") as stream:
        environment = stream.read().decode()
    for password in keystone.passwords.values():
        assert password not in log + command + environment


@pytest.mark.parametrize("given", [{}, {"no_proxy": "a.test"}, {"NO_PROXY": "a.test,b.test"}])
def test_openrc_keeps_passwords_from_proxies(
    keystone: RunningKeystone, given: dict[str, str]
) -> None:
    """Sourced by a shell, for a program that follows the variables."""
    url = f"{keystone.auth_url}/auth/tokens"
    program = f"import requests.utils as u; print(u.should_bypass_proxies('{url}', None))"
    proxied = {"http_proxy": "http://127.0.0.1:9", **given}
    script = f". '{keystone.state_dir}/openrc' && echo $no_proxy && {sys.executable} -c \"$1\""
    done = subprocess.run(
        ["sh", "-euc", script, "sh", program],
        env=proxied,
        capture_output=True,
        text=True,
        check=True,
    )
    kept, bypassed = done.stdout.split()
    assert bypassed == "True"
    assert [one for one in kept.split(",") if one] == [
        *(one for text in given.values() for one in text.split(",")),
        "127.0.0.1",
    ]
