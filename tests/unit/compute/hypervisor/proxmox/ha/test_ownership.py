"""Whose resources and rules of high availability are."""

from __future__ import annotations

from typing import Any

import pytest

from compute.hypervisor.proxmox.ha import ownership

GROUP = "6e4e4b2c-1f5f-4b51-9a6e-3c1f9d1f0a11"
WHOSE = ("cloud-1", GROUP)
COMMENT = f"micronova: cloud=cloud-1 group={GROUP}"


def listed_rule(**more: Any) -> dict[str, Any]:
    rule = {
        "rule": f"micronova-cloud-1-{GROUP}",
        "type": "resource-affinity",
        "affinity": "negative",
        "resources": "vm:100,vm:101",
        "comment": f"Server group {GROUP}\n",
        "digest": "d",
    }
    return {**rule, **more}


def known(*comments: str | None) -> dict[int, ownership.Resource]:
    return ownership.resources(
        {"sid": f"vm:{100 + number}", "state": "ignored", "comment": comment, "digest": "d"}
        for number, comment in enumerate(comments)
    )


def test_names_and_comments_are_read_as_they_are_written() -> None:
    assert ownership.rule_name(WHOSE) == listed_rule()["rule"]
    assert ownership.rule_comment(WHOSE) == listed_rule()["comment"].strip()
    assert ownership.resource_comment(WHOSE) == COMMENT
    assert ownership.managed(known(COMMENT + "\n", None, "by hand"), WHOSE) == {100}
    assert list(ownership.rules([listed_rule(), listed_rule(rule="theirs")])) == [WHOSE]


def test_containers_are_no_vms() -> None:
    assert ownership.resources([{"sid": "ct:100", "comment": COMMENT}]) == {}


@pytest.mark.parametrize(
    ("changed", "comments", "why"),
    [
        ({}, (COMMENT, COMMENT), None),
        ({}, (COMMENT,), None),  # a VM that is no resource any more is nobody's
        ({}, (COMMENT, "by hand"), "it names resources that are not ours (VMs 101)"),
        ({}, (COMMENT, COMMENT.replace("cloud-1", "cloud-2")), "it names resources that are not"),
        ({"comment": "mine"}, (COMMENT, COMMENT), "its comment is not ours"),
        ({"comment": None}, (COMMENT, COMMENT), "its comment is not ours"),
        ({"type": "node-affinity"}, (COMMENT, COMMENT), "it is a node-affinity rule"),
        ({"resources": "vm:100,ct:101"}, (COMMENT, COMMENT), "it names containers"),
    ],
)
def test_a_rule_of_our_name_is_taken_over_by(
    changed: dict[str, Any], comments: tuple[str, ...], why: str | None
) -> None:
    rule = ownership.rules([listed_rule(**changed)])[WHOSE]
    found = ownership.taken_over(rule, WHOSE, known(*comments))
    assert (found or "").startswith(why or "")
    assert (found is None) == (why is None)


def test_what_is_ignored_is_used_by_nobody() -> None:
    assert known(COMMENT)[100].unused
    assert not ownership.resources([{"sid": "vm:100", "comment": COMMENT}])[100].unused
