from __future__ import annotations

import shlex
import stat
from pathlib import Path

import yaml

from identity.clouds import CLOUDS, clouds, openrc, service_credentials, write_client_files
from identity.layout import GRANTS
from identity.passwords import USERS

AUTH_URL = "http://127.0.0.1:5000/v3"
PASSWORDS = {user: f"it's {user}'s $ecret" for user in USERS}


def test_every_cloud_is_a_grant() -> None:
    for user, project in CLOUDS.values():
        assert project in {granted for granted, _ in GRANTS[user]}


def test_clouds() -> None:
    content = clouds(AUTH_URL, PASSWORDS)["clouds"]
    assert set(content) == set(CLOUDS)
    assert content["micronova"] == {
        "auth": {
            "auth_url": AUTH_URL,
            "username": "admin",
            "password": PASSWORDS["admin"],
            "project_name": "demo",
            "user_domain_name": "Default",
            "project_domain_name": "Default",
        },
        "region_name": "RegionOne",
        "interface": "public",
        "identity_api_version": 3,
    }


def test_openrc_quotes_for_the_shell() -> None:
    exported = dict(
        shlex.split(line)[1].split("=", 1)
        for line in openrc(AUTH_URL, PASSWORDS, "p1").splitlines()
        if line.startswith("export ")
    )
    assert exported["OS_PASSWORD"] == PASSWORDS["admin"]
    assert (exported["OS_PROJECT_NAME"], exported["OS_PROJECT_ID"]) == ("demo", "p1")


def test_files_replace_old_ones(tmp_path: Path) -> None:
    (tmp_path / "openrc").write_text("old")
    write_client_files(tmp_path, AUTH_URL, PASSWORDS, "p1")
    content = yaml.safe_load((tmp_path / "clouds.yaml").read_text())
    assert content == clouds(AUTH_URL, PASSWORDS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clouds.yaml", "openrc"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_services_use_their_own_user() -> None:
    credentials = service_credentials(AUTH_URL, PASSWORDS)
    assert credentials["username"] == "micronova"
    assert credentials["password"] == PASSWORDS["micronova"]


def test_openrc_excepts_a_loopback_address_from_proxies() -> None:
    line = 'export no_proxy="${no_proxy:-${NO_PROXY:-}},127.0.0.1"\n'
    assert line in openrc(AUTH_URL, PASSWORDS, "p1")
    assert "no_proxy" not in openrc("https://cloud.example:5000/v3", PASSWORDS, "p1")
