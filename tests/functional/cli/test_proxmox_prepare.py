"""`micronova proxmox prepare`: from a cluster as installed to one where servers are built."""

from __future__ import annotations

import os
import pwd
import re
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.errors import ConfigurationError
from compute.prepare.files import Folder
from compute.prepare.root import Refused
from compute.prepare.wanted import Wanted, wanted
from launcher.proxmox import Place, Preparation, places, prepared
from simulator.state.access import one_time_code
from tests.functional.unprepared import (
    Unprepared,
    at_a_terminal,
    micronova,
    unprepared,
)

IMAGE = "https://images.example/debian-13.qcow2"
ALL = ("--zone", "tenants=vxlan", "--pool", "cloud", "--image", IMAGE, "--with", "passwords")
TOKEN = "micronova@pve!agent"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Unprepared]:
    with unprepared(tmp_path / "simulator") as running:
        yield running


def prepare(
    cluster: Unprepared, folder: Path, *more: str, typed: str | None = None, code: int = 0
) -> tuple[str, str]:
    """Run it by the CA and a password on standard input; return both outputs."""
    words = ("proxmox", "prepare", cluster.url, "--folder", str(folder), "--password-fd", "0")
    trust = () if {"--ca", "--fingerprint"} & set(more) else ("--ca", str(cluster.ca_file))
    done = micronova([*words, *trust, *more], cluster.password if typed is None else typed)
    assert done.returncode == code, done.stdout + done.stderr
    assert cluster.password not in done.stdout + done.stderr
    return done.stdout, done.stderr


def test_all_is_made_once_and_the_secrets_stay_where_they_belong(
    cluster: Unprepared, tmp_path: Path
) -> None:
    folder = tmp_path / "etc"
    shown, made = prepare(cluster, folder, "--yes", *ALL)
    planned = [line.strip() for line in shown.splitlines() if line.startswith("  ")]
    assert "token micronova@pve!agent" in planned
    assert "storage local gets content import" in planned
    assert [f"Cluster proxmox: {line}" for line in planned[: len(made.splitlines())]] == (
        made.splitlines()
    )
    assert "privilege_missing" not in shown
    assert "broken:" not in shown
    token_file = folder / "proxmox.token"
    assert stat.S_IMODE(token_file.stat().st_mode) == 0o600
    [name, secret] = token_file.read_text().strip().split("=")
    assert (name, secret in shown + made) == (TOKEN, False)
    kept = "".join(path.read_text() for path in folder.iterdir())
    assert cluster.password not in kept
    assert "PVE:root" not in kept + shown + made  # a ticket
    assert (folder / "proxmox-ca.pem").read_text() == cluster.ca_file.read_text()

    before = cluster.access(), {path: path.read_bytes() for path in folder.iterdir()}
    cluster.calls()
    shown, made = prepare(cluster, folder, "--yes", *ALL)
    assert "  Nothing is missing." in shown.splitlines()
    assert made == ""
    assert cluster.writes() == []
    assert before == (
        cluster.access(),
        {path: path.read_bytes() for path in folder.iterdir()},
    )


def test_what_it_shows_is_not_made(cluster: Unprepared, tmp_path: Path) -> None:
    shown, _ = prepare(cluster, tmp_path / "etc", "--dry-run", *ALL)
    assert "  user micronova@pve" in shown.splitlines()
    assert "  SDN zone tenants, vxlan" in shown.splitlines()
    _, said = prepare(cluster, tmp_path / "etc", *ALL, code=1)
    assert said == "Nothing was made: --yes makes it.\n"
    assert cluster.writes() == []
    assert not (tmp_path / "etc").exists()


def test_a_person_is_asked_for_all_that_is_needed(cluster: Unprepared, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "micronova", "proxmox", "prepare", cluster.url]
    environment = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    password = ("Password of root@pam: ", cluster.password)
    trusted = ("(Node, Certificates)? [y/N] ", "y")
    code, shown = at_a_terminal(
        words, [password, trusted, ("Make all of it? [y/N] ", "no")], environment
    )
    assert (code, cluster.writes()) == (0, [])
    assert cluster.password not in shown
    code, shown = at_a_terminal(
        words, [password, trusted, ("Make all of it? [y/N] ", "y")], environment
    )
    assert code == 0, shown
    folder = tmp_path / "config" / "micronova"
    assert (folder / "proxmox-ca.pem").read_text() == cluster.ca_file.read_text()
    assert f"--proxmox-token-file {folder}/proxmox.token" in shown
    assert "Cluster proxmox: Proxmox VE 9.2.11, nodes: pve1, pve2." in shown


def test_a_second_factor(cluster: Unprepared, tmp_path: Path) -> None:
    secret = "0123456789abcdef0123456789abcdef01234567"
    cluster.control("POST", "totp", user="root@pam", secret=secret)
    words = [sys.executable, "-m", "micronova", "proxmox", "prepare", cluster.url]
    words += ["--ca", str(cluster.ca_file), "--folder", str(tmp_path / "etc"), "--yes"]
    password = ("Password of root@pam: ", cluster.password)
    asked = "One-time code of root@pam at proxmox: "
    code, shown = at_a_terminal(words, [password, (asked, "123")], {})
    assert (code, "root@pam can't log in" in shown) == (1, True)
    right = one_time_code(secret, time.time())
    code, shown = at_a_terminal(words, [password, (asked, right)], {})
    assert code == 0, shown
    assert right not in shown
    # nobody can be asked
    _, said = prepare(cluster, tmp_path / "etc", "--yes", code=1)
    assert said.startswith("There is no terminal to ask at")


def test_the_password_is_sent_to_nobody_who_is_not_trusted(
    cluster: Unprepared, tmp_path: Path
) -> None:
    nobody = str(tmp_path / "other.pem")
    with unprepared(tmp_path / "other") as other:
        Path(nobody).write_text(other.ca_file.read_text())
    _, said = prepare(cluster, tmp_path / "etc", "--yes", "--ca", nobody, code=1)
    assert "is not trusted" in said
    wrong = ":".join(["AB"] * 32)
    _, said = prepare(cluster, tmp_path / "etc", "--yes", "--fingerprint", wrong, code=1)
    assert "shows another certificate than AB:AB" in said
    words = ["proxmox", "prepare", cluster.url, "--yes", "--password-fd", "0"]
    said = micronova(words, cluster.password).stderr
    assert cluster.calls() == []
    [printed] = re.findall(r"--fingerprint (\S+) trusts it", said)
    prepare(cluster, tmp_path / "etc", "--yes", "--fingerprint", printed)
    assert (tmp_path / "etc" / "proxmox-ca.pem").read_text() == cluster.ca_file.read_text()


@pytest.mark.parametrize(
    ("more", "typed", "said"),
    [
        ((), "wrong", "Cluster proxmox: root@pam can't log in"),
        ((), "", "The password is empty."),
        (("--user", "nobody@pve"), "wrong", "Cluster proxmox: nobody@pve can't log in"),
        (("--storage", "nowhere=iso"), None, "There is no storage nowhere; there are local, "),
        (("--storage", "local=files"), None, "local=files is not storage=content"),
        (("--zone", "tenants"), None, "There is no SDN zone tenants: --zone tenants=vxlan"),
        (("--zone", "tenants=vlan"), None, "--zone tenants=vlan,bridge=… lacks its bridge."),
        (("--zone", "a-b=vxlan"), None, "a-b=vxlan is no zone"),
        (("--image", "https://x.example/debian.img"), None, "https://x.example/debian.img is no"),
        (("--image", "../x.qcow2=https://x.example/"), None, "../x.qcow2=https://x.example/ is"),
        (("--token", "micronova@pve"), None, "micronova@pve is no token"),
        (("--pool", "a b"), None, "a b is no name of a pool."),
        (("--owner", "nobody-there"), None, "There is no user nobody-there."),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_made(
    cluster: Unprepared, tmp_path: Path, more: tuple[str, ...], typed: str | None, said: str
) -> None:
    _, error = prepare(cluster, tmp_path / "etc", "--yes", *more, typed=typed, code=1)
    assert error.startswith(said)
    assert len(error.splitlines()) == 1
    assert cluster.writes() == []


def test_the_lines_of_a_root_shell_make_the_same(cluster: Unprepared, tmp_path: Path) -> None:
    storages = ("--storage", "local=import", "--zone", "tenants=vxlan,peers=10.0.0.1,10.0.0.2")
    more = (*storages, "--pool", "cloud", "--with", "steering")
    printed = micronova(["proxmox", "prepare", "--print", *more]).stdout
    secret = cluster.root(tmp_path / "node").run(printed.splitlines())
    [value] = re.findall(r'"value": "([^"]+)"', secret)
    token_file = tmp_path / "etc" / "proxmox.token"
    token_file.parent.mkdir()
    token_file.touch(0o600)
    token_file.write_text(f"{TOKEN}={value}\n")
    cluster.calls()
    shown, _ = prepare(cluster, tmp_path / "etc", "--yes", *more)
    assert "  Nothing is missing." in shown.splitlines()
    assert cluster.writes() == []
    # all of them may be run again
    cluster.root(tmp_path / "node").run(
        [line for line in printed.splitlines() if " token add " not in line]
    )


def test_the_lines_for_a_cluster_are_what_it_lacks(cluster: Unprepared, tmp_path: Path) -> None:
    prepare(cluster, tmp_path / "etc", "--yes")
    cluster.calls()
    more = ("--pool", "cloud", "--zone", "tenants=vxlan", "--image", IMAGE)
    printed, _ = prepare(cluster, tmp_path / "etc", "--print", *more)
    assert cluster.writes() == []
    assert all(line.startswith("pvesh ") for line in printed.splitlines())
    cluster.root(tmp_path / "node").run(printed.splitlines())
    shown, _ = prepare(cluster, tmp_path / "etc", "--dry-run", *more)
    assert "  Nothing is missing." in shown.splitlines()


def test_what_people_changed_is_mended_and_no_more(cluster: Unprepared, tmp_path: Path) -> None:
    folder = tmp_path / "etc"
    prepare(cluster, folder, "--yes")
    whole = cluster.access()
    root = cluster.root(tmp_path / "node")
    root.run(
        [
            "pveum role modify Micronova --privs VM.Audit",
            "pveum acl delete /nodes --tokens 'micronova@pve!agent' --roles MicronovaAudit",
            "pveum user modify micronova@pve --enable 0",
            "pveum user token modify micronova@pve agent --privsep 0",
            "pvesm set local --content iso,backup,vztmpl",
        ]
    )
    cluster.calls()
    prepare(cluster, folder, "--yes")
    assert cluster.access() == whole
    assert cluster.writes() == [
        "PUT access/users/micronova@pve",
        "PUT access/users/micronova@pve/token/agent",
        "PUT access/roles/Micronova",
        "PUT access/acl",
        "PUT storage/local",
    ]


def test_a_secret_that_is_lost_is_replaced_only_on_request(
    cluster: Unprepared, tmp_path: Path
) -> None:
    folder = tmp_path / "etc"
    prepare(cluster, folder, "--yes")
    old = (folder / "proxmox.token").read_text()
    for text in (None, old.replace(old[-5], "x"), old.replace("!agent", "!other")):
        (folder / "proxmox.token").unlink(missing_ok=True)
        if text is not None:
            (folder / "proxmox.token").touch(0o600)
            (folder / "proxmox.token").write_text(text)
        cluster.calls()
        _, said = prepare(cluster, folder, "--yes", code=1)
        assert "or give this one another secret with --regenerate" in said
        assert cluster.writes() == []
    prepare(cluster, folder, "--yes", "--regenerate")
    assert (folder / "proxmox.token").read_text() != old
    cluster.calls()
    prepare(cluster, folder, "--yes", "--regenerate")
    assert cluster.writes() == []


def test_changes_of_others_are_not_applied(cluster: Unprepared, tmp_path: Path) -> None:
    root = cluster.root(tmp_path / "node")
    root.run("pvesh create /cluster/sdn/zones --zone theirs --type simple")
    cluster.calls()
    words = ("--yes", "--zone", "tenants=vxlan")
    _, said = prepare(cluster, tmp_path / "etc", *words, code=1)
    assert "Changes of others are not applied yet: theirs." in said
    assert cluster.writes() == []
    for line in re.findall(r"pvesh (?:set|create) \S+(?= applies| discards)", said)[:1]:
        root.run(line)
    prepare(cluster, tmp_path / "etc", *words)
    assert cluster.access()[-1] == ["tenants", "theirs"]


def test_files_of_people_are_left_alone(cluster: Unprepared, tmp_path: Path) -> None:
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "compute.conf").write_text("[compute]\nworker = mine\n")
    _, said = prepare(cluster, folder, "--yes", code=1)
    assert "was written by hand, and is left alone" in said
    assert cluster.writes() == []
    (folder / "compute.conf").unlink()
    prepare(cluster, folder, "--yes")
    configured = folder / "compute.conf"
    text = configured.read_text().replace("token_file", "vm_storage = local-lvm\ntoken_file")
    configured.write_text(text)
    with unprepared(tmp_path / "second") as second:
        words = ("proxmox", "prepare", f"west={second.url}", "--ca", str(second.ca_file))
        more = ("--folder", str(folder), "--yes", "--password-fd", "0")
        done = micronova([*words, *more], second.password)
        # the doctor knows both: their nodes have the same names
        assert done.returncode == 2, done.stderr
        assert "# [proxmox:west] host_prefix = west-" in done.stdout
    assert "vm_storage = local-lvm" in configured.read_text()
    assert "clusters = proxmox,west" in configured.read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_the_services_own_what_they_must(cluster: Unprepared, tmp_path: Path) -> None:
    who = pwd.getpwnam("nobody")
    prepare(cluster, tmp_path / "etc", "--yes", "--owner", "nobody")
    found = {path.name: path.stat() for path in (tmp_path / "etc").iterdir()}
    owners = {name: (one.st_uid, one.st_gid) for name, one in found.items()}
    assert owners == {
        "compute.conf": (0, who.pw_gid),
        "proxmox.token": (who.pw_uid, who.pw_gid),
        "proxmox-ca.pem": (0, who.pw_gid),
    }
    assert (tmp_path / "etc").stat().st_gid == who.pw_gid


def test_two_clusters_at_once(cluster: Unprepared, tmp_path: Path) -> None:
    with unprepared(tmp_path / "second") as second:
        both = tmp_path / "both.pem"
        both.write_text(cluster.ca_file.read_text() + second.ca_file.read_text())
        words = ["proxmox", "prepare", f"east={cluster.url}", f"west={second.url}"]
        more = ["--folder", str(tmp_path / "etc"), "--yes", "--password-fd", "0"]
        done = micronova(
            [*words, *more, "--ca", str(both)], f"{cluster.password}\n{second.password}\n"
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert cluster.access()[:3] == second.access()[:3]
    text = (tmp_path / "etc" / "compute.conf").read_text()
    # nodes of both have the same names
    assert text.count("host_prefix = east-") == text.count("host_prefix = west-") == 1


# --- ended after any of its calls


def preparation(cluster: Unprepared, folder: Path, asked: Wanted) -> Preparation:
    place = places([cluster.url], str(cluster.ca_file), None)
    [made] = prepared(place, Folder(folder), asked)
    made.root.log_in("root@pam", cluster.password, str)
    made.look()
    return made


def test_what_was_interrupted_is_completed(cluster: Unprepared, tmp_path: Path) -> None:
    asked = wanted(TOKEN, ["zones"], ["tenants=vxlan"], pool_name="cloud", images=[IMAGE])
    folder = tmp_path / "etc"
    folder.mkdir()
    whole = list(preparation(cluster, folder, asked).changes)
    steps = 0
    while (one := preparation(cluster, folder, asked)).changes:
        next(one.make())
        steps += 1
        assert steps <= len(whole)
    assert steps == len(whole)
    with unprepared(tmp_path / "other") as other:
        (tmp_path / "else").mkdir()
        list(preparation(other, tmp_path / "else", asked).make())
        assert other.access() == cluster.access()


def test_a_call_that_fails_is_said_as_it_is(cluster: Unprepared, tmp_path: Path) -> None:
    cluster.simulator.fault(action="fail", method="PUT", path="/access/acl", times=1)
    _, said = prepare(cluster, tmp_path / "etc", "--yes", code=1)
    assert "PUT access/acl: 5" in said.splitlines()[-1]
    prepare(cluster, tmp_path / "etc", "--yes")


def test_a_download_that_fails_is_no_success(cluster: Unprepared, tmp_path: Path) -> None:
    cluster.simulator.fault(action="task-fail", method="POST", path="download-url", times=1)
    one = preparation(cluster, tmp_path, wanted(TOKEN, images=[IMAGE]))
    with pytest.raises(Refused, match="download-url"):
        list(one.make())


def test_places() -> None:
    assert places(["east=https://[::1]:8007"], None, None) == [Place("east", "::1", 8007)]
    assert places(["https://pve1"], None, None) == [Place("proxmox", "pve1", 8006)]
    assert Place("east", "::1", 8007).url == "https://[::1]:8007"


@pytest.mark.parametrize(
    "text",
    [
        "http://pve1",
        "pve1:8006",
        "https://",
        "https://root@pve1",
        "https://pve1:x",
        "=x",
        "a b=https://pve1",
    ],
)
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(ConfigurationError):
        places([text], None, None)
