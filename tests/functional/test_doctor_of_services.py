"""The doctor finds what is wrong with databases, bus, Keystone and files."""

from __future__ import annotations

import http.server
import json
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import db.migrate
import db.roles
from common.findings import Finding, Level, exit_code
from launcher import configuration, doctor
from tests.fixtures import null
from tests.fixtures.small_disk import fill, small_disk
from tests.functional import backends, postgres_pair
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401
from tests.functional.postgres_pair import Member
from tests.functional.waiting import eventually

DEAD = "127.0.0.1:9"
TYPES = ("compute", "placement", "image", "network", "block-storage", "volumev3", "clustering")


def codes(folder: Path, sections: Mapping[str, Mapping[str, str]], mode: int = 0o600) -> set[str]:
    return {one.code for one in findings(folder, sections, mode)}


def findings(
    folder: Path,
    sections: Mapping[str, Mapping[str, str]],
    mode: int = 0o600,
    checks: Iterable[doctor.Check] | None = None,
) -> tuple[Finding, ...]:
    file = folder / "micronova.conf"
    lines: list[str] = []
    for name, options in {"compute": {"driver": null.DRIVER}, **sections}.items():
        lines += [f"[{name}]", *(f"{option} = {value}" for option, value in options.items())]
    file.write_text("\n".join(lines))
    file.chmod(mode)
    conf = configuration.load([str(file)])
    return doctor.diagnose(conf, checks).findings


def test_a_good_installation(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/cloud.sqlite"
    db.migrate.upgrade(url)
    assert codes(tmp_path, {"database": {"connection": url}}) == set()


def test_a_file_that_all_can_read(tmp_path: Path) -> None:
    assert codes(tmp_path, {}, 0o644) == {"file_readable"}


def test_a_database_without_tables(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/cloud.sqlite"
    assert codes(tmp_path, {"database": {"connection": url}}) == {"schema_differs"}


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("mysql+mysqldb://u:secret@h/d", "pip install 'micronova[mysql]'"),
        ("postgresql+pg8000://u:secret@h/d", "pip install 'micronova[postgresql]'"),
        ("nothing://u:secret@h/d", "# [database] connection = <URL>"),
    ],
)
def test_a_missing_driver_breaks_nothing_off(tmp_path: Path, url: str, line: str) -> None:
    database = {"connection": url, "reader_connection": url}
    bus = {"transport_url": f"rabbit://u:p@{DEAD}/"}
    found = findings(tmp_path, {"database": database, "DEFAULT": bus})
    assert {one.code for one in found} == {"driver_missing", "bus_unreachable"}
    assert line in {text for one in found for text in one.lines}
    assert exit_code(found) == 2
    assert "secret" not in str(found)


def test_a_check_that_breaks_off_is_a_finding(tmp_path: Path) -> None:
    def roles(_: Any) -> Iterator[Finding]:
        raise KeyError("x")
        yield

    [found] = findings(tmp_path, {}, checks=[roles])
    assert (found.code, found.level) == ("check_broke_off", Level.BROKEN)
    assert "The check of roles broke off: KeyError" in found.what


def test_a_database_that_does_not_answer(tmp_path: Path) -> None:
    url = f"postgresql+psycopg://nobody:x@{DEAD}/cloud"
    assert codes(tmp_path, {"database": {"connection": url}}) == {"database_unreachable"}


@pytest.mark.database
def test_the_role_of_the_apis(tmp_path: Path, postgres_url: str) -> None:  # noqa: F811
    db.migrate.upgrade(postgres_url)
    owner = sa.create_engine(postgres_url)
    with owner.begin() as connection:
        connection.exec_driver_sql("DROP ROLE IF EXISTS looks")
        connection.exec_driver_sql("CREATE ROLE looks LOGIN PASSWORD 'looks'")
    reader = sa.make_url(postgres_url).set(username="looks", password="looks")
    sections = {"database": {"reader_connection": reader.render_as_string(False)}}
    assert codes(tmp_path, sections) == {"reader_blind"}
    with owner.begin() as connection:
        connection.exec_driver_sql("GRANT ALL ON ALL TABLES IN SCHEMA public TO looks")
    assert codes(tmp_path, sections) == {"reader_writes"}
    db.roles.grant_reader(postgres_url, "looks")
    assert codes(tmp_path, sections) == set()
    with owner.begin() as connection:
        connection.exec_driver_sql("ALTER ROLE looks NOLOGIN")
    assert codes(tmp_path, sections) == {"reader_refused"}
    owner.dispose()


@pytest.mark.database
def test_servers_of_a_database_that_fails_over(tmp_path: Path) -> None:
    with postgres_pair.pair() as pair:
        pair.execute("CREATE DATABASE cloud")
        url = pair.url("cloud")
        db.migrate.upgrade(url)
        eventually(pair.caught_up)
        sections = {"database": {"connection": url}}
        assert codes(tmp_path, sections) == set()
        pair.fail_over(Member.freeze)
        pair.replica.thaw()
        [found] = findings(tmp_path, sections)
        assert found.code == "database_two_primaries"
        assert f"127.0.0.1:{pair.replica.port} takes statements" in found.what
        pair.replica.kill()
        assert codes(tmp_path, sections) == {"database_server_silent"}


def test_a_database_on_a_full_disk(tmp_path: Path) -> None:
    with (
        # which PostgreSQL's user may pass through
        backends.private_folder() as folder,
        small_disk(folder / "disk", 300) as disk,
        postgres_pair.single(disk) as server,
    ):
        url = server.server.url("postgres")
        db.migrate.upgrade(url)
        sections = {"database": {"connection": url}}
        assert codes(tmp_path, sections) == set()
        fill(disk)
        [found] = findings(tmp_path, sections)
        assert (found.code, found.level) == ("database_full", Level.BROKEN)
        (disk / "others").unlink()
        assert codes(tmp_path, sections) == set()


def test_a_database_file_on_a_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "a disk", 60) as disk:
        url = f"sqlite:///{disk}/cloud.sqlite"
        db.migrate.upgrade(url)
        sections = {"database": {"connection": url}}
        assert codes(tmp_path, sections) == set()
        fill(disk)
        found = {one.code: one for one in findings(tmp_path, sections)}
        [line] = found["database_full"].lines
        assert (
            str(disk)
            in subprocess.run(
                line, shell=True, check=True, timeout=30, capture_output=True, text=True
            ).stdout
        )
        (disk / "others").unlink()
        assert codes(tmp_path, sections) == set()


def test_a_bus_that_does_not_answer(tmp_path: Path) -> None:
    sections = {"DEFAULT": {"transport_url": f"rabbit://u:p@{DEAD}/"}}
    assert codes(tmp_path, sections) == {"bus_unreachable"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("os_compute_api:servers:create: '@'\n", set()),
        ("os_compute_api:servers:creat: '@'\n", {"policy_unknown"}),
        ("- a list\n", {"policy_broken"}),
        ("a: [\n", {"policy_broken"}),
        ("os_compute_api:servers:create: 'role admin'\n", {"policy_rule_wrong"}),
        ("os_compute_api:servers:create: 'rule:nobody_has_it'\n", {"policy_rule_wrong"}),
        ("os_compute_api:servers:create: 7\n", {"policy_rule_wrong"}),
        ("os_compute_api:servers:create: '!'\n", set()),
        ("os_compute_api:servers:create: ''\n", {"policy_rule_empty"}),
        ("os_compute_api:servers:create:\n", {"policy_rule_empty"}),
        ("os_compute_api:servers:create: []\n", {"policy_rule_empty"}),
        ("os_compute_api:servers:create: ['role:admin']\n", set()),
        ("os_compute_api:servers:create: rule:mine\nmine: role:a\n", set()),
    ],
)
def test_policy_files(tmp_path: Path, text: str, found: set[str]) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(text)
    assert codes(tmp_path, {"oslo_policy": {"policy_file": str(policy)}}) == found


KEPT = (
    "os_compute_api:servers:create:forced_host: role:admin\n# of os_compute_api:servers:create\n"
)


@pytest.mark.parametrize("name", ["os_compute_api:servers:create", "a.c/d", "a[1"])
@pytest.mark.parametrize("form", ["{}: role admin\n", '"{}": "role admin"\n', "'{}' :\n"])
def test_the_line_that_mends_a_policy(tmp_path: Path, name: str, form: str) -> None:
    policy = tmp_path / "a policy.yaml"
    policy.write_text(KEPT + "abc/d: '!'\n" + form.format(name))
    lines = {
        line
        for one in findings(tmp_path, {"oslo_policy": {"policy_file": str(policy)}})
        for line in one.lines
        if "abc" not in line
    }
    assert len(lines) == 1
    subprocess.run(lines.pop(), shell=True, check=True, timeout=30)
    assert policy.read_text() == KEPT + "abc/d: '!'\n"


def test_a_policy_of_several_lines_is_shown(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("os_compute_api:servers:create:\n- role admin\n")
    [one] = findings(tmp_path, {"oslo_policy": {"policy_file": str(policy)}})
    assert one.lines == (f"grep -nF -e os_compute_api:servers:create {policy}",)


class Keystone:
    """Answers one token, or a refusal."""

    def __init__(self) -> None:
        self.status, self.roles, self.types = 201, ["admin", "service"], TYPES
        self.api_status = 200
        """What the APIs of the catalog answer."""
        keystone = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                is_keystone = self.path.startswith("/v3")
                self._answer(200 if is_keystone else keystone.api_status, keystone.versions())

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self._answer(keystone.status, keystone.token())

            def _answer(self, status: int, body: Any) -> None:
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("X-Subject-Token", "t")
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                """Be silent."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def versions(self) -> Any:
        link = {"href": f"{self.url}/v3/", "rel": "self"}
        version = {"id": "v3.14", "status": "stable", "links": [link], "media-types": []}
        return {"versions": {"values": [version]}}

    def token(self) -> Any:
        domain = {"id": "default", "name": "Default"}
        endpoint = {"id": "e", "url": self.url, "interface": "public"}
        endpoint |= {"region": "RegionOne", "region_id": "RegionOne"}
        catalog = [
            {"id": kind, "type": kind, "name": kind, "endpoints": [endpoint]}
            for kind in self.types
        ]
        return {
            "token": {
                "methods": ["password"],
                "user": {"id": "u", "name": "micronova", "domain": domain},
                "project": {"id": "p", "name": "service", "domain": domain},
                "roles": [{"id": one, "name": one} for one in self.roles],
                "issued_at": "2026-01-01T00:00:00.000000Z",
                "expires_at": "2099-01-01T00:00:00.000000Z",
                "catalog": catalog,
            }
        }

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def keystone() -> Iterator[Keystone]:
    running = Keystone()
    yield running
    running.stop()


def login(url: str) -> dict[str, dict[str, str]]:
    values = {"auth_type": "password", "auth_url": f"{url}/v3", "username": "micronova"}
    values |= {"password": "p", "project_name": "service", "region_name": "RegionOne"}
    values |= {"user_domain_id": "default", "project_domain_id": "default"}
    of_the_check = {name: v for name, v in values.items() if name != "region_name"}
    return {"placement": values, "keystone_authtoken": of_the_check}


def test_a_keystone_that_has_all(tmp_path: Path, keystone: Keystone) -> None:
    assert codes(tmp_path, login(keystone.url)) == set()


def test_the_login_that_checks_tokens(tmp_path: Path, keystone: Keystone) -> None:
    sections = login(keystone.url)
    check = sections.pop("keystone_authtoken")
    assert codes(tmp_path, sections) == {"token_check_missing"}
    elsewhere = {**check, "auth_url": f"http://{DEAD}/v3"}
    [found] = findings(tmp_path, {**sections, "keystone_authtoken": elsewhere})
    assert (found.code, found.where) == ("keystone_unreachable", "Keystone, [keystone_authtoken]")
    nobody = {name: value for name, value in check.items() if name != "auth_url"}
    [found] = findings(tmp_path, {**sections, "keystone_authtoken": nobody})
    assert (found.code, found.where) == ("login_missing", "Keystone, [keystone_authtoken]")
    keystone.roles = ["member"]
    wheres = {one.where for one in findings(tmp_path, login(keystone.url))}
    assert wheres == {"Keystone", "Keystone, [keystone_authtoken]"}


def test_a_keystone_that_does_not_answer(tmp_path: Path) -> None:
    assert codes(tmp_path, login(f"http://{DEAD}")) == {"keystone_unreachable"}


def test_a_login_that_is_refused(tmp_path: Path, keystone: Keystone) -> None:
    keystone.status = 401
    assert codes(tmp_path, login(keystone.url)) == {"login_refused"}


@pytest.mark.parametrize(
    ("roles", "wheres"),
    [
        (["admin"], []),
        (["service"], []),
        (["agent", "agent@pve1"], ["Keystone, [keystone_authtoken]"]),
        # Not on the system, which this login isn't about.
        (["reader"], ["Keystone", "Keystone, [keystone_authtoken]"]),
    ],
)
def test_a_role_that_is_missing(
    tmp_path: Path, keystone: Keystone, roles: list[str], wheres: list[str]
) -> None:
    keystone.roles = roles
    found = findings(tmp_path, login(keystone.url))
    assert {one.code for one in found} == ({"role_missing"} if wheres else set())
    assert sorted(one.where for one in found) == wheres


def test_a_catalog_without_volumes(tmp_path: Path, keystone: Keystone) -> None:
    keystone.types = TYPES[:4]
    assert codes(tmp_path, login(keystone.url)) == {"catalog_lacks"}


def test_an_api_that_its_proxy_does_not_reach(tmp_path: Path, keystone: Keystone) -> None:
    keystone.api_status = 502
    found = findings(tmp_path, login(keystone.url))
    assert {one.code for one in found} == {"endpoint_dead"}
    assert all("answers 502 Bad Gateway" in one.what for one in found)
    # without a token, it says so: it answers
    keystone.api_status = 401
    assert codes(tmp_path, login(keystone.url)) == set()


def test_a_clock_that_differs_from_the_databases(
    tmp_path: Path,
    postgres_url: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    db.migrate.upgrade(postgres_url)
    sections = {"database": {"connection": postgres_url}}
    assert codes(tmp_path, sections) == set()
    real = time.time
    for off, level in ((5, Level.WARNING), (-120, Level.BROKEN)):
        monkeypatch.setattr(time, "time", lambda off=off: real() + off)
        [found] = [one for one in findings(tmp_path, sections) if one.code == "clock_of_machine"]
        assert found.level == level
        assert ("ahead of" if off > 0 else "behind") in found.what
