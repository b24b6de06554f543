"""What users, operators and other services hold of each release is in this tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from release import surfaces
from release.surfaces import ROOT, Surface, broken

RECORDED = sorted(surfaces.FOLDER.glob("*.json"))


@pytest.fixture(scope="module")
def present() -> Mapping[str, Surface]:
    return surfaces.present()


@pytest.mark.parametrize("record", RECORDED, ids=lambda one: one.stem)
def test_nothing_that_a_release_had_is_gone(present: Mapping[str, Surface], record: Path) -> None:
    assert list(broken(json.loads(record.read_text(encoding="utf-8")), present)) == []


#: arguments that were added to a method, and that a service of a release before may leave out
#: without harm: what must not be left out is a method of its own
LEFT_OUT = frozenset[str]()


@pytest.mark.parametrize("record", RECORDED, ids=lambda one: one.stem)
def test_an_older_service_leaves_out_no_argument_that_matters(
    present: Mapping[str, Surface], record: Path
) -> None:
    had = json.loads(record.read_text(encoding="utf-8"))["methods"]
    added = {one for one in set(present["methods"]) - set(had) if one.partition("(")[0] in had}
    assert added == LEFT_OUT


def test_a_record_is_whole_and_the_same_each_time(
    present: Mapping[str, Surface], tmp_path: Path
) -> None:
    surfaces.write(tmp_path / "made" / "1.0.0.json")
    assert json.loads((tmp_path / "made" / "1.0.0.json").read_text("utf-8")) == present
    # as a release writes it: classes of one name come in another order there
    for seed in ("1", "2"):
        path = tmp_path / f"{seed}.json"
        words = [sys.executable, "-m", "release.surfaces", str(path)]
        subprocess.run(words, cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": seed}, check=True)
        assert json.loads(path.read_text("utf-8"))["fields"].items() <= present["fields"].items()
    for kind, some in {
        "options": {"[database] connection": "String", "[proxmox:<cluster>] token_file": "String"},
        "routes": {"POST /servers": "", "page /servers": ""},
        "policies": {"os_compute_api:servers:create": ""},
        "metrics": {"micronova_rpc_calls_total": "Counter(topic, method, result)"},
        "steps": {"compute_create_vm": "", "conductor_schedule": ""},
        "findings": {"doctor schema_differs": "", "audit address_without_port": ""},
        "errors": {"Unavailable": "micronova.unavailable"},
        "values": {"VmState.ACTIVE": "active", "Category.LOCK": "lock", "action reboot": ""},
        "fields": {"Build.memory_mib": "int optional", "Report.operation_id": "int"},
        "methods": {"conductor.report(reports)": "", "compute.execute": ""},
        "names": {"UUID of image": "a0de003e-96a4-43dc-ab67-3f2f6f6d2f11"},
        "commands": {"micronova db expand": "", "unit micronova.target": ""},
    }.items():
        assert some.items() <= present[kind].items(), kind
    assert "db/migrations/versions/r0001_initial.py" in present["revisions"]


HAD = {"fields": {"Build.name": "str", "Build.cpu": "int"}, "methods": {"a.do(what)": ""}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, []),
        ({"fields": {"Build.cpu": "int optional"}}, []),
        ({"fields": {"Build.disk": "int optional"}}, []),
        ({"methods": {"a.do(how)": "optional", "a.undo": "", "a.undo(what)": ""}}, []),
        ({"fields": {"Other.disk": "int"}}, []),
        ({"fields": {"Build.disk": "int"}}, ["fields: Build.disk is new, and has no default"]),
        ({"methods": {"a.do(how)": ""}}, ["methods: a.do(how) is new, and has no default"]),
        ({"fields": {"Build.cpu": "str"}}, ["fields: Build.cpu was 'int', and is 'str'"]),
    ],
)
def test_what_may_be_added(change: dict[str, dict[str, str]], said: list[str]) -> None:
    now = {kind: {**names, **change.get(kind, {})} for kind, names in HAD.items()}
    assert list(broken(HAD, now)) == said


def test_what_is_removed_is_named() -> None:
    now = {"fields": {"Build.name": "str"}}
    assert list(broken(HAD, now)) == ["fields: Build.cpu is gone", "methods: a.do(what) is gone"]
