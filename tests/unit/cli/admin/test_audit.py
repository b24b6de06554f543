"""``micronova audit`` and ``micronova orphan``: what they show, do, and their exit codes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from openstack import exceptions

from tests.fixtures.sdk import FakeConnection, FakeProxy, Ran, run

LOOKED = {"servers": 2, "vms": 3}


def a_report(**changes: Any) -> dict[str, Any]:
    values = {"clean": True, "complete": True, "looked_at": LOOKED, "open": {}, "healed": 0}
    return {**values, "in_flux": 0, "unseen": [], **changes}


def a_finding(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "id": number,
        "kind": "vm_of_deleted_server",
        "severity": "leak",
        "subject": f"sim1/{number}",
        "cause": "Server x was deleted.",
        "remedy": None,
        "heal": "destroy",
        "node": "pve1",
        "first_seen_at": "2026-01-01T00:00:00Z",
        "answer": None,
        "evidence": {"status": "stopped", "lock": None},
        **changes,
    }


def answered(body: Any, status: int = 200) -> Any:
    return SimpleNamespace(status_code=status, json=lambda: body)


class Api:
    """The audit's resources."""

    def __init__(
        self,
        *findings: Mapping[str, Any],
        states: tuple[str, ...] = ("queued", "running", "done"),
        report: Mapping[str, Any] | None = None,
        audits: tuple[Mapping[str, Any], ...] = (),
    ) -> None:
        self._findings, self._states, self._audits = list(findings), list(states), list(audits)
        self._report = report or a_report(clean=not findings)
        self.posted: list[tuple[str, Any]] = []
        self.healed_at: str | None = "2026-01-01T00:01:00Z"
        self.later: dict[str, Any] = {}

    def get(self, path: str) -> Any:
        if path == "/audit/findings":
            return answered({"findings": self._findings})
        if path.startswith("/audit/findings/"):
            number = int(path.rpartition("/")[2])
            (found,) = (one for one in self._findings if one["id"] == number)
            return answered({"finding": {"healed_at": self.healed_at, **found, **self.later}})
        if path == "/audits":
            return answered({"audits": self._audits})
        state = self._states.pop(0) if len(self._states) > 1 else self._states[0]
        return answered({"audit": {"id": 7, "state": state, "report": self._report}})

    def post(self, path: str, json: Any = None) -> Any:
        self.posted.append((path, json))
        if path == "/audits":
            return answered({"audit": {"id": 7}}, 202)
        return answered({"heal": {"answer": "Operation 3 removes it.", "operation_id": 3}}, 202)

    def run(self, *argv: str) -> Ran:
        return run(FakeConnection(FakeProxy(get=self.get, post=self.post)), *argv)


def test_a_clean_audit() -> None:
    ran = Api().run("audit")
    assert ran.code == 0
    assert "Looked at 2 servers, 3 VMs. Healed 0; everything agrees." in ran.err


def test_differences_are_left() -> None:
    ran = Api(a_finding()).run("audit", "-f", "json")
    assert ran.code == 1
    [row] = json.loads(ran.out)
    assert (row["Finding"], row["Heals By"]) == (1, "destroy")
    assert "1 difference left" in ran.err
    long = Api(a_finding(remedy="do this")).run("audit", "--long", "-f", "json")
    [row] = json.loads(long.out)
    assert (row["Remedy"], row["Evidence"]) == ("do this", "status=stopped")


def test_not_everything_was_looked_at() -> None:
    report = a_report(complete=False, unseen=["Node pve2 is offline."], in_flux=1)
    ran = Api(report=report).run("audit")
    assert ran.code == 2
    assert "Not seen: Node pve2 is offline." in ran.err
    assert "1 server being worked on" in ran.err


@pytest.mark.parametrize(
    ("api", "options"),
    [
        (Api(states=("failed",), report={"error": "KeyError"}), []),
        (Api(states=("running",)), ["--timeout", "1"]),
        (Api(), ["--last"]),
    ],
    ids=["broke", "too long", "never run"],
)
def test_an_audit_without_a_result(api: Api, options: list[str]) -> None:
    assert api.run("audit", *options).code == 2


def test_a_cloud_that_does_not_answer() -> None:
    error = exceptions.HttpException("no way")
    connection = FakeConnection(FakeProxy(post=error, get=error))
    ran = run(connection, "audit")
    assert ran.code == 2
    assert "no way" in ran.err


def test_what_the_last_audit_left() -> None:
    last = {"id": 3, "state": "done", "report": a_report()}
    api = Api(a_finding(), audits=({"id": 4, "state": "running", "report": {}}, last))
    assert api.run("audit", "--last").code == 1
    assert api.posted == []


RECORD = a_finding(9, kind="allocation_without_server")
FOREIGN = a_finding(2, kind="vm_without_server", heal=None, remedy="as root on pve1: …")
RUNNING = a_finding(3, evidence={"status": "running"})


def test_orphans_are_things_on_hypervisors() -> None:
    ran = Api(a_finding(), FOREIGN, RECORD).run("orphan", "list", "-f", "json")
    rows = json.loads(ran.out)
    assert [(row["Finding"], row["Ours"]) for row in rows] == [(1, "yes"), (2, "no")]
    assert rows[0]["Evidence"] == {"status": "stopped"}


def test_reap_is_a_dry_run() -> None:
    api = Api(a_finding(), FOREIGN, RUNNING)
    ran = api.run("orphan", "reap")
    assert ran.code == 0
    assert "1: would remove sim1/1: Server x was deleted. (status='stopped')" in ran.out
    assert "2: kept sim1/2: not proven ours (as root on pve1: …)" in ran.out
    assert "3: kept sim1/3: it is running; --force removes it all the same" in ran.out
    assert "--yes does it" in ran.err
    assert api.posted == []


@pytest.mark.parametrize(("force", "reaped"), [(False, [1]), (True, [1, 3])])
def test_reap(force: bool, reaped: list[int]) -> None:
    api = Api(a_finding(), FOREIGN, RUNNING)
    ran = api.run("orphan", "reap", "--yes", *(["--force"] if force else []))
    assert ran.code == 0
    asked = [(f"/audit/findings/{one}/action", {"heal": {"force": force}}) for one in reaped]
    assert api.posted == asked + [("/audits", None)] * len(reaped)
    assert "1: removed sim1/1" in ran.out


def test_a_vm_and_its_config_drive_are_reaped_by_one_request() -> None:
    """The second one would be refused, as an operation works on the server."""
    place = {"server_uuid": "x", "cluster": "sim1", "vmid": 1}
    drive = a_finding(1, kind="config_drive_without_server", evidence={"volid": "d"}, **place)
    api = Api(drive, a_finding(2, **place), a_finding(3, **{**place, "vmid": 2}))
    ran = api.run("orphan", "reap", "--yes")
    assert ran.code == 0
    begun = [path for path, _ in api.posted if path != "/audits"]
    assert begun == ["/audit/findings/2/action", "/audit/findings/3/action"]
    assert ran.out.splitlines() == [f"{one}: removed sim1/{one}" for one in (2, 1, 3)]


def test_reap_says_what_it_did_not_remove() -> None:
    api = Api(a_finding())
    api.healed_at = None
    api.later = {"answer": "It is not ours: its description names no server."}
    ran = api.run("orphan", "reap", "--yes")
    assert ran.code == 1
    assert ran.out == ""
    assert "sim1/1 is still there: It is not ours" in ran.err


def test_reap_those_that_are_named() -> None:
    api = Api(a_finding(1), a_finding(4))
    assert api.run("orphan", "reap", "--yes", "4").code == 0
    assert [path for path, _ in api.posted] == ["/audit/findings/4/action", "/audits"]
    ran = api.run("orphan", "reap", "--yes", "5")
    assert ran.code == 1
    assert "No open orphan: 5" in ran.err


def test_nothing_to_reap() -> None:
    ran = Api().run("orphan", "reap", "--yes")
    assert (ran.code, ran.out) == (0, "")
