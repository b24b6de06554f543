"""The client on the embedded cloud, as a user runs it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.functional import programs
from tests.functional.cloud import EmbeddedCloud

TINY = ("--flavor", "m1.small", "--image", "debian-12", "--network", "vmbr0")


@pytest.fixture(scope="module")
def cloud(three_nodes: EmbeddedCloud) -> EmbeddedCloud:
    """A simulated cluster of three nodes."""
    return three_nodes


def run(cloud: EmbeddedCloud, *argv: str, who: str = "micronova-demo") -> tuple[int, str, str]:
    """Run a command to its end; return exit code, standard output, standard error."""
    done = programs.run("micronova", argv, cloud.environment(who))
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


def states(steps: str) -> list[str]:
    """The task_states among the lines of a wait."""
    lines = (re.fullmatch(r" *\+[\d.]+ m?s  (\S+)", line) for line in steps.splitlines())
    return [line[1] for line in lines if line]


def test_the_stages_of_openstacks_own_commands(cloud: EmbeddedCloud) -> None:
    code, out, steps = run(cloud, "server", "create", *TINY, "--wait", "staged", "-f", "json")
    assert code == 0, steps
    uuid = json.loads(out)["id"]
    code, out, steps = run(cloud, "server", "rebuild", "--wait", "staged", "-f", "json")
    assert code == 0, steps
    assert json.loads(out)["id"] == uuid
    assert states(steps)[-1] == "rebuild_spawning"

    code, out, steps = run(cloud, "server", "rescue", "--wait", "staged")
    assert (code, out, states(steps)) == (0, "", ["rescuing"]), steps
    code, out, steps = run(cloud, "server", "unrescue", "--wait", "staged")
    assert (code, states(steps)) == (0, ["unrescuing"]), steps

    code, out, steps = run(
        cloud, "server", "image", "create", "--wait", "staged", "--name", "copy", "-f", "json"
    )
    assert code == 0, steps
    assert json.loads(out)["status"] == "active"
    assert "image_snapshot" in states(steps)

    moved = ("server", "migrate", "--live-migration", "--wait", uuid)
    code, out, steps = run(cloud, *moved, who="micronova")
    assert (code, out, states(steps)) == (0, "", ["migrating"]), steps
    assert "live migration" in steps
    code, out, steps = run(cloud, "server", "resize", "--flavor", "m1.tiny", "--wait", "staged")
    assert code == 1, steps  # its disk is greater
    code, out, steps = run(cloud, "server", "resize", "--flavor", "m1.medium", "--wait", "staged")
    assert (code, out) == (0, ""), steps
    assert "resize_migrating" in states(steps)
    code, _, steps = run(cloud, "server", "resize", "confirm", "--wait", "staged")
    assert code == 0, steps
    assert run(cloud, "server", "show", "staged", "-f", "value", "-c", "status")[1] == "ACTIVE\n"

    code, _, steps = run(cloud, "server", "shelve", "--wait", "staged")
    assert (code, states(steps)[0]) == (0, "shelving"), steps
    code, _, steps = run(cloud, "server", "shelve", "--wait", "staged")
    assert (code, steps) == (0, "")  # it is already
    code, _, steps = run(cloud, "server", "unshelve", "--wait", "staged")
    assert code == 0, steps
    assert states(steps)
    assert run(cloud, "server", "delete", "--wait", "staged")[0] == 0
    assert run(cloud, "image", "delete", "copy")[0] == 0


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


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "command",
    [
        "flavor list",
        "image list",
        "network list",
        "subnet list",
        "port list",
        "keypair list",
        "aggregate list",
        "server group list",
        "hypervisor list",
        "extension list --network",
        "project list",
        "resource provider list",
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


def test_what_would_have_worked_is_reported_and_works(
    cloud: EmbeddedCloud, tmp_path: Path
) -> None:
    admin = "micronova-admin"
    sizes = ("--vcpus", "1", "--ram", "900000", "--disk", "10")
    assert run(cloud, "flavor", "create", *sizes, "too-big", who=admin)[0] == 0
    assert run(cloud, "quota", "set", "--ram", "-1", "demo", who=admin)[0] == 0
    asked = ("--flavor", "too-big", "--image", "debian-12", "--network", "vmbr0")
    code, out, _ = run(cloud, "schedule", "--dry-run", *asked, "-f", "json", who=admin)
    assert code == 1
    [row] = json.loads(out)
    assert row["Host"] == ""
    assert "It would fit with " in row["Reason"]

    code, _, error = run(cloud, "server", "create", "--wait", *asked, "big")
    assert code == 1
    assert re.search(r"No valid host was found: none has room\. [\w., -]+ would fit\.", error), (
        error
    )
    less = re.search(r"It would fit with (\d+) MiB or less\.", row["Reason"])
    assert less, row
    assert less[1] not in error
    _, uuid, _ = run(cloud, "server", "show", "big", "-f", "value", "-c", "id")
    code, story, _ = run(cloud, "explain", uuid.strip(), who=admin)
    # once in the summary, once in the timeline
    assert (code, story.count(less[0])) == (0, 2)
    file = tmp_path / "big.html"
    assert run(cloud, "explain", uuid.strip(), "--html", str(file), who=admin)[0] == 0
    assert less[0] in file.read_text()

    sizes = ("--vcpus", "1", "--ram", less[1], "--disk", "10")
    assert run(cloud, "flavor", "create", *sizes, "fits", who=admin)[0] == 0
    asked = ("--flavor", "fits", "--image", "debian-12", "--network", "vmbr0")
    code, out, _ = run(cloud, "schedule", *asked, "-f", "json", who=admin)
    assert code == 0
    hints = ("--hint", "build_near_host_ip=192.0.2.1")
    code, out, error = run(cloud, "schedule", "--why", *asked, "-f", "json", who=admin)
    [row] = json.loads(out)
    assert (code, f"host {row['Host']}  3 hosts considered" in error) == (0, True), error
    assert f"score {row['Host']}" in error
    code, _, error = run(cloud, "schedule", "--why", *asked, *hints, who=admin)
    assert (code, "refused by near host IP: 3 hosts" in error) == (1, True), error

    code, _, error = run(cloud, "server", "create", "--wait", *asked, "fits")
    assert code == 0, error
    assert run(cloud, "server", "delete", "--wait", "big", "fits")[0] == 0


def test_how_many_more_fit_and_what_a_dead_node_means(cloud: EmbeddedCloud) -> None:
    admin = "micronova-admin"
    code, out, said = run(cloud, "capacity", "--flavor", "m1.small", "-f", "json", who=admin)
    assert code == 0
    rows = json.loads(out)
    total = sum(row["Fit"] for row in rows)
    assert said.strip() == f"{total} more would fit."
    assert len(rows) == 3
    gone = rows[0]
    _, out, _ = run(
        cloud,
        *("capacity", "--flavor", "m1.small", "--without", gone["Host"], "-f", "json"),
        who=admin,
    )
    assert sum(row["Fit"] for row in json.loads(out)) == total - gone["Fit"]

    assert run(cloud, "server", "create", *TINY, "--wait", "movable")[0] == 0
    _, uuid, _ = run(cloud, "server", "show", "movable", "-f", "value", "-c", "id")
    _, out, _ = run(cloud, "server", "show", uuid.strip(), "-f", "json", who=admin)
    host = json.loads(out)["OS-EXT-SRV-ATTR:host"]
    code, out, said = run(cloud, "capacity", "--without", host, "-f", "json", who=admin)
    assert code == 0, said
    [moved] = json.loads(out)
    assert moved["Name"] == "movable"
    assert moved["Would Go To"] not in ("", host)
    assert run(cloud, "capacity", "--without", host)[0] == 1  # for administrators only
    assert run(cloud, "server", "delete", "--wait", "movable")[0] == 0


def test_a_flavor_that_asks_for_what_no_host_has(cloud: EmbeddedCloud) -> None:
    admin = "micronova-admin"
    sizes = ("--vcpus", "1", "--ram", "512", "--disk", "10")
    for name, spec, reason in (
        ("arm", "trait:HW_ARCH_AARCH64=required", "without HW_ARCH_AARCH64"),
        ("unknown", "trait:CUSTOM_NOBODY=required", "without CUSTOM_NOBODY"),
        ("gpu", "resources:CUSTOM_GPU=1", "1 CUSTOM_GPU asked, 0 CUSTOM_GPU free at most"),
    ):
        assert run(cloud, "flavor", "create", *sizes, name, who=admin)[0] == 0
        assert run(cloud, "flavor", "set", "--property", spec, name, who=admin)[0] == 0
        asked = ("--flavor", name, "--image", "debian-12", "--network", "vmbr0")
        code, out, _ = run(cloud, "schedule", *asked, "-f", "json", who=admin)
        [row] = json.loads(out)
        assert (code, row["Host"]) == (1, "")
        assert reason in row["Reason"]
        code, _, error = run(cloud, "server", "create", "--wait", *asked, f"on-{name}")
        assert (code, "would fit" in error, reason in error) == (1, True, False), error
        assert run(cloud, "server", "delete", "--wait", f"on-{name}")[0] == 0


def test_a_name_that_begins_with_another_s_means_no_other(
    cloud: EmbeddedCloud, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    assert run(cloud, "keypair", "create", "web", "--private-key", str(key))[0] == 0
    assert run(cloud, "keypair", "delete", "web#1")[0] == 1
    assert run(cloud, "keypair", "show", "web")[0] == 0

    admin = "micronova-admin"
    small = ("--ram", "64", "--vcpus", "1", "--disk", "1")
    for name, flavor_id in (("m1#large", "9"), ("other", "m1")):
        made = run(cloud, "flavor", "create", name, "--id", flavor_id, *small, who=admin)
        assert made[0] == 0, made
    assert '"9"' in run(cloud, "flavor", "show", "m1#large", "-f", "json", who=admin)[1]
    image = ("--image", "cirros", "--network", "vmbr0", "--wait")
    code, _, said = run(cloud, "server", "create", "--flavor", "m1#large", *image, "tagged")
    assert code == 0, said
    assert "m1#large" in run(cloud, "server", "list", "-f", "json")[1]
    assert run(cloud, "flavor", "delete", "m1#large", who=admin)[0] == 0
    assert "other" in run(cloud, "flavor", "list", "-f", "json", who=admin)[1]

    # tags have microversions of their own
    tagged = ("--os-compute-api-version", "2.96", "server")
    for tag in ("web", "web#1"):
        code, _, said = run(cloud, *tagged, "set", "--tag", tag, "tagged")
        assert code == 0, said
    assert run(cloud, *tagged, "unset", "--tag", "web#1", "tagged")[0] == 0
    assert run(cloud, *tagged, "unset", "--tag", "..", "tagged")[0] == 1
    shown = json.loads(run(cloud, *tagged, "show", "tagged", "-f", "json")[1])
    assert shown["tags"] in ("web", ["web"])
    assert run(cloud, "server", "delete", "tagged", "--wait")[0] == 0
