from __future__ import annotations

import datetime

import pytest

from common import codec
from common.messages.commands import Build, Command, ConfigDrive, Image, Nic, Placed, Template
from common.messages.reports import Category, Failure, Outcome, Report, Step
from common.resources.states import ResourceType

NOW = datetime.datetime(2026, 1, 1, 12, 30, tzinfo=datetime.UTC)


def test_a_command_comes_back_as_it_was() -> None:
    command = Build(
        1, 2, ResourceType.SERVER, "s", Placed("h", "c", "n", 100), NOW,
        image=Image("i", "debian", "shared:import/x.qcow2", properties={"a": "b"}),
        template=Template(101, "n", "local"),
        nics=(Nic("p", "n", "net", "vmbr0", "fa:16:3e:00:00:01", dns=("9.9.9.9",)),),
        config_drive=ConfigDrive({"uuid": "s"}, {"links": []}, {}, "Zg=="),
        tags=("a",),
    )  # fmt: skip
    for kind in (Build, Command):
        assert codec.load(kind, codec.loads(codec.dumps(command))) == command


def test_a_command_that_this_release_does_not_know_is_no_other() -> None:
    with pytest.raises(ValueError, match="Teleport is no Command"):
        codec.load(Command, {"kind": "Teleport", "operation_id": 1})


def test_a_report_comes_back_as_it_was() -> None:
    failure = Failure(Category.LOCK, "busy", log_tail=("a", "b"), left=("VM 1",))
    steps = (Step("compute_create_vm", 0, NOW, None, None, "UPID:x", {"vmid": 1}),)
    report = Report(1, 1, ResourceType.SERVER, "s", "h", steps, Outcome(False, failure=failure))
    assert codec.load(Report, codec.loads(codec.dumps(report))) == report


def test_unknown_fields_are_ignored_and_missing_ones_default() -> None:
    assert codec.load(Outcome, {"ok": True, "of_a_newer_release": 1}) == Outcome(True)


@pytest.mark.parametrize("kind", sorted(set(codec.family(Outcome)), key=str))
def test_an_outcome_comes_back_as_its_class(kind: type[Outcome]) -> None:
    report = Report(1, 1, ResourceType.SERVER, "s", "h", outcome=kind(True))
    (back,) = codec.load(list[Report], codec.loads(codec.dumps([report])))
    assert (type(back.outcome), back) == (kind, report)


def test_an_outcome_that_this_release_does_not_know_is_no_other() -> None:
    data = {"operation_id": 1, "attempt": 1, "resource_type": "server", "resource_id": "s"}
    with pytest.raises(ValueError, match="Beamed is no Outcome"):
        codec.load(Report, {**data, "host": "h", "outcome": {"kind": "Beamed", "ok": True}})
