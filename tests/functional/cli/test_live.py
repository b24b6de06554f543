"""The client on the embedded cloud, as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.functional.cloud import ROOT, EmbeddedCloud, embedded_cloud

TINY = ("--flavor", "m1.small", "--image", "debian-12", "--network", "vmbr0")


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCloud]:
    """A simulated cluster of three nodes."""
    state_dir = tmp_path_factory.mktemp("live")
    with embedded_cloud(state_dir, driver="proxmox", nodes=3, speed=50) as cloud:
        yield cloud


def run(cloud: EmbeddedCloud, *argv: str, who: str = "micronova-demo") -> tuple[int, str, str]:
    """Run a command to its end; return exit code, standard output, standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "micronova", *argv],
        cwd=ROOT,
        env=cloud.environment(who),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_server_from_create_to_delete(cloud: EmbeddedCloud) -> None:
    code, out, steps = run(cloud, "server", "create", *TINY, "--wait", "web-1", "-f", "json")
    assert code == 0, steps
    server = json.loads(out)
    assert server["status"] == "ACTIVE"
    assert steps.strip()

    code, out, _ = run(cloud, "server", "list", "-f", "json")
    assert [(row["Name"], row["Image"]) for row in json.loads(out)] == [("web-1", "debian-12")]
    _, out, _ = run(cloud, "server", "event", "list", "web-1", "-f", "json")
    [event] = json.loads(out)
    assert event["Action"] == "create"

    for subject in ("web-1", server["id"], event["Request ID"]):
        code, story, error = run(cloud, "explain", subject)
        assert code == 0, error
        assert "create  done" in story
        assert "active" in story

    code, _, steps = run(cloud, "server", "delete", "--wait", "web-1")
    assert code == 0, steps
    assert run(cloud, "server", "show", "web-1")[0] == 1
    code, story, _ = run(cloud, "explain", server["id"])
    assert (code, "delete  done" in story) == (0, True)


def test_a_create_that_fits_nowhere_says_why(cloud: EmbeddedCloud) -> None:
    who = "micronova"
    project = json.loads(run(cloud, "token", "issue", "-f", "json", who=who)[1])["project_id"]
    assert run(cloud, "quota", "set", project, "--ram", "-1", who=who)[0] == 0
    code, _, error = run(cloud, "flavor", "create", "--ram", "99999999", "huge", who=who)
    assert code == 0, error
    options = ("--flavor", "huge", "--image", "debian-12", "--network", "vmbr0")
    code, out, error = run(cloud, "server", "create", *options, "--wait", "web-2", who=who)
    assert (code, out) == (1, "")
    assert "create failed" in error
    assert "micronova explain req-" in error
    code, story, _ = run(cloud, "explain", "web-2", who=who)
    assert code == 0
    assert "no host" in story
    assert run(cloud, "server", "delete", "--wait", "web-2", who=who)[0] == 0


def test_a_node_taken_out_and_back(cloud: EmbeddedCloud) -> None:
    who = "micronova"
    nodes = json.loads(run(cloud, "node", "list", "-f", "json", who=who)[1])
    assert [node["Health"] for node in nodes] == ["ok"] * 3
    host = nodes[0]["Host"]
    code, _, error = run(cloud, "node", "disable", host, "--reason", "new disk", who=who)
    assert code == 0, error
    nodes = json.loads(run(cloud, "node", "list", "-f", "json", who=who)[1])
    assert nodes[0]["Health"] == "disabled: new disk"
    assert run(cloud, "node", "enable", host, who=who)[0] == 0


@pytest.mark.parametrize(
    "command",
    [
        "flavor list",
        "image list",
        "network list",
        "subnet list",
        "port list",
        "keypair list",
        "hypervisor list",
        "compute service list",
        "availability zone list",
        "quota show",
        "limits show --absolute",
        "token issue",
        "catalog list",
    ],
)
def test_every_noun_answers(cloud: EmbeddedCloud, command: str) -> None:
    code, out, error = run(cloud, *command.split(), "-f", "json", who="micronova")
    assert code == 0, error
    assert isinstance(json.loads(out), list | dict)
