"""Preflight says what is missing, in one line, with the command that mends it."""

from __future__ import annotations

import http.server
import shlex
import socket
import threading
from pathlib import Path
from typing import Any

import proxmoxer
import pytest
import requests

from common.errors import ConfigurationError
from compute import preflight
from compute.hypervisor.proxmox import settings
from compute.hypervisor.proxmox.api import privileges
from compute.hypervisor.proxmox.settings import Token
from tests.functional.compute.conftest import as_root, configuration, proxmox_text
from tests.functional.simulator_fixture import RunningSimulator


@pytest.fixture(autouse=True)
def _fresh(simulator: RunningSimulator) -> None:
    simulator.control("POST", "reset")


def failure(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        preflight.check(configuration(tmp_path, text))
    assert "\n" not in caught.value.message
    return caught.value.message


def test_a_cluster_that_has_all(simulator: RunningSimulator, tmp_path: Path) -> None:
    [found] = preflight.check(configuration(tmp_path, proxmox_text(simulator)))
    assert (found.name, found.version, found.nodes) == ("c1", "9.2.11", ("pve1", "pve2"))


def test_only_the_chosen_hosts_count(simulator: RunningSimulator, tmp_path: Path) -> None:
    [found] = preflight.check(configuration(tmp_path, proxmox_text(simulator, hosts="pve2")))
    assert found.nodes == ("pve2",)


def test_nobody_answers(simulator: RunningSimulator, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        dead = f"https://127.0.0.1:{unused.getsockname()[1]}"
    message = failure(tmp_path, proxmox_text(simulator, endpoints=dead))
    assert "No endpoint of cluster c1 answers" in message


def test_a_certificate_that_is_not_trusted(simulator: RunningSimulator, tmp_path: Path) -> None:
    text = proxmox_text(simulator)
    text = text.replace(f"ca_file = {simulator.ca_file}", "")
    message = failure(tmp_path, text)
    assert "is not trusted (" in message
    assert "--proxmox-ca" in message


def test_a_server_that_speaks_plain_http(simulator: RunningSimulator, tmp_path: Path) -> None:
    plain = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    threading.Thread(target=plain.serve_forever, daemon=True).start()
    try:
        url = f"https://127.0.0.1:{plain.server_port}"
        message = failure(tmp_path, proxmox_text(simulator, endpoints=url))
    finally:
        plain.shutdown()
        plain.server_close()
    assert f"127.0.0.1:{plain.server_port} does not speak TLS" in message
    assert "trusted" not in message


def test_a_name_that_nobody_has(simulator: RunningSimulator, tmp_path: Path) -> None:
    message = failure(tmp_path, proxmox_text(simulator, endpoints="https://nobody.invalid:8006"))
    assert "(nobody.invalid:8006: no such host)" in message


def test_a_wrong_token(simulator: RunningSimulator, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("micronova@pve!agent=00000000-0000-0000-0000-000000000000")
    token.chmod(0o600)
    message = failure(tmp_path, proxmox_text(simulator, token_file=str(token)))
    assert "The token micronova@pve!agent is refused" in message
    assert "401: Authentication failed!; there is no such token, or its secret" in message
    assert "b''" not in message
    assert message.endswith(
        "Run as root on one of its nodes: { pveum user add micronova@pve || true; } && "
        "{ pveum user token add micronova@pve agent --privsep 1 || "
        "pveum user token modify micronova@pve agent --regenerate 1; } "
        "# [proxmox:c1] token_file = <a file with micronova@pve!agent=…>"
    )
    assert "00000000-0000" not in message


def test_what_is_to_be_granted_suffices(simulator: RunningSimulator, tmp_path: Path) -> None:
    root = Root(simulator)
    root.ask("POST", "access/users", userid="few@pve")
    made = root.ask("POST", "access/users/few@pve/token/agent", privsep=1)
    token = tmp_path / "token"
    token.write_text(f"few@pve!agent={made['value']}")
    token.chmod(0o600)
    text = proxmox_text(simulator, token_file=str(token))
    message = failure(tmp_path, text)
    assert "few@pve!agent lacks privileges" in message
    for path in ("/vms", "/nodes", "/storage"):
        assert f"{path}: " in message, "all that is lacking is reported at once"
    for line in privileges.all_grant_lines(Token("few@pve", "agent", "")):
        root.run(line)
    [found] = preflight.check(configuration(tmp_path, text))
    assert found.nodes == ("pve1", "pve2")


class Root:
    """Runs the commands that make roles and rights, as root would on a node."""

    def __init__(self, simulator: RunningSimulator) -> None:
        self._url = f"{simulator.url}/api2/json"
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.verify = str(simulator.ca_file)
        password = (simulator.state_dir / "root-password").read_text().strip()
        ticket = self.ask("POST", "access/ticket", username="root@pam", password=password)
        self._session.cookies["PVEAuthCookie"] = ticket["ticket"]
        self._session.headers["CSRFPreventionToken"] = ticket["CSRFPreventionToken"]

    def ask(self, method: str, door: str, /, **params: Any) -> Any:
        answer = self._session.request(method, f"{self._url}/{door}", data=params, timeout=60)
        assert answer.ok, answer.text
        return answer.json()["data"]

    def run(self, line: str) -> None:
        """Run `{ one || other; }`: the other command where the first one fails."""
        first, _, other = line.removeprefix("{ ").removesuffix("; }").partition(" || ")
        try:
            self._run(first)
        except AssertionError:
            self._run(other)

    def _run(self, command: str) -> None:
        match shlex.split(command):
            case ["pveum", "user", "add", userid]:
                self.ask("POST", "access/users", userid=userid)
            case ["pveum", "role", "add", role, "--privs", names]:
                self.ask("POST", "access/roles", roleid=role, privs=names)
            case ["pveum", "role", "modify", role, "--append", "1", "--privs", names]:
                self.ask("PUT", f"access/roles/{role}", append=1, privs=names)
            case ["pveum", "acl", "modify", path, *alone, kind, who, "--roles", role]:
                given = {kind.removeprefix("--"): who}
                given |= {"propagate": alone[1]} if alone else {}
                self.ask("PUT", "access/acl", path=path, roles=role, **given)
            case ["true"]:
                pass


def test_one_run_reports_all_that_is_lacking(simulator: RunningSimulator, tmp_path: Path) -> None:
    root = Root(simulator)
    root.ask("POST", "access/users", userid="none@pve")
    made = root.ask("POST", "access/users/none@pve/token/agent", privsep=1)
    token = tmp_path / "token"
    token.write_text(f"none@pve!agent={made['value']}")
    token.chmod(0o600)
    text = proxmox_text(simulator, token_file=str(token))
    for line in failure(tmp_path, text).partition(" on one of its nodes: ")[2].split(" && "):
        root.run(line)
    assert preflight.check(configuration(tmp_path, text))


def test_what_is_refused_for_want_of_a_privilege(
    simulator: RunningSimulator, tmp_path: Path
) -> None:
    root = Root(simulator)
    for role in ("Micronova", "MicronovaAudit"):
        root.ask("DELETE", f"access/roles/{role}")
    root.ask("POST", "access/users", userid="base@pve")
    made = root.ask("POST", "access/users/base@pve/token/agent", privsep=1)
    token = tmp_path / "token"
    token.write_text(f"base@pve!agent={made['value']}")
    token.chmod(0o600)
    options = {"token_file": str(token), "write_affinity_rules": "true"}
    conf = configuration(tmp_path, proxmox_text(simulator, **options))
    conf.set_override("firewall", "off", group="networks")
    base = [*privileges.needs((), (), ()), privileges.ANY_STORAGE]
    for line in privileges.grant_lines(base, Token("base@pve", "agent", "")):
        root.run(line)
    [found] = preflight.check(conf)
    assert [one.problem for one in found.refused] == [
        f"{what} are refused: the token base@pve!agent lacks {lacks}."
        for what, lacks in (
            ("Resizes to other hosts and migrations", "/vms: VM.Migrate"),
            ("Consoles", "/vms: VM.Console"),
            ("Backups of volumes", "/vms: VM.Backup"),
            ("Snapshots of volumes", "/vms: VM.Snapshot"),
            ("Administrators' passwords in guests", "/vms: VM.GuestAgent.Unrestricted"),
            ("Health checks by guests' agents", "/vms: VM.GuestAgent.Audit"),
            (
                "Aborting and forcing the end of live migrations",
                "/: Sys.Modify; /vms: Sys.Audit",
            ),
            ("Affinity rules of high availability", "/: Sys.Console"),
        )
    ]
    for one in found.refused:
        for line in one.remedy:
            root.run(line)
    [found] = preflight.check(conf)
    assert found.refused == ()


def test_a_firewall_that_is_off(simulator: RunningSimulator, tmp_path: Path) -> None:
    conf = configuration(tmp_path, proxmox_text(simulator))
    options = as_root(simulator).cluster.firewall.options
    options.put(enable=0)
    for option, words in (
        ("off", []),
        ("auto", ["New ports aren't filtered, although [networks] firewall is auto"]),
        ("on", ["Nothing is filtered here, although [networks] firewall is on"]),
    ):
        conf.set_override("firewall", option, group="networks")
        found = [one for one in preflight.check(conf)[0].refused if one.code == "firewall_off"]
        assert [one.problem.partition(":")[0] for one in found] == words
        for one in found:
            assert one.remedy == ("pvesh set /cluster/firewall/options --enable 1",)
    options.put(enable=1)
    assert preflight.UNFILTERED not in {one.code for one in preflight.check(conf)[0].refused}


def test_a_storage_that_takes_no_disks(simulator: RunningSimulator, tmp_path: Path) -> None:
    message = failure(tmp_path, proxmox_text(simulator, vm_storage="nope"))
    assert "nope" in message


def test_a_cluster_without_quorum(simulator: RunningSimulator, tmp_path: Path) -> None:
    simulator.fault(action="node-down", node="pve2")
    assert "has no quorum" in failure(tmp_path, proxmox_text(simulator))


@pytest.mark.parametrize(
    ("bounds", "found"),
    [
        ("lower=100,upper=100000", False),
        ("lower=200000", False),
        ("lower=99950,upper=150000", True),
        ("lower=150000", True),
    ],
)
def test_ids_for_people_that_meet_the_band(
    simulator: RunningSimulator, tmp_path: Path, bounds: str, found: bool
) -> None:
    cluster = settings.clusters(configuration(tmp_path, proxmox_text(simulator)))[0]
    host, port = cluster.endpoints[0]
    api = proxmoxer.ProxmoxAPI(
        host,
        port=port,
        user="root@pam",
        password=(simulator.state_dir / "root-password").read_text(),
        verify_ssl=str(simulator.ca_file),
    )
    api.cluster.options.put(**{"next-id": bounds})
    listed = preflight.findings(configuration(tmp_path, proxmox_text(simulator)))
    assert bool(listed) is found, listed
    if found:
        assert "the band 100000 to 199999" in listed[0].problem
        assert listed[0].remedy == ("pvesh set /cluster/options --next-id lower=100,upper=100000",)


def test_bounds_as_a_map_and_ids_that_are_used_up(
    simulator: RunningSimulator, tmp_path: Path
) -> None:
    cluster = settings.clusters(configuration(tmp_path, proxmox_text(simulator)))[0]
    options = {"next-id": {"lower": "99000", "upper": "200000"}}
    assert preflight.next_ids(cluster, options, ()) is None
    found = preflight.next_ids(cluster, options, range(99_000, 99_950))
    assert found is not None
    assert "50 of them are left" in found.problem
    assert preflight.next_ids(cluster, {}, ()) is None
