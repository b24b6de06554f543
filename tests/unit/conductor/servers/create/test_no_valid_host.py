"""What the owner reads: what of his own would do, and nothing of hosts."""

from __future__ import annotations

import re
from typing import Any

import pytest

from common.messages.scheduling import Change, Decision, Suggestion, Way
from conductor.plans import CreateParams
from conductor.servers.create.no_valid_host import candidates, limits, sentence, with_flavor
from conductor.store.servers.flavor_offers import Limits, Offer
from tests.unit.scheduler.decide.test_choose import a_request

ROOM = "No valid host was found: none has room. "
SOME = "No valid host was found: none can take the server. "


def a_decision(*changes: Change, others: tuple[Way, ...] = (), **counts: int) -> Decision:
    suggestion = Suggestion(changes, 3, "pve2", others) if changes else None
    reason = "None of 6 hosts has room: 999999999 MiB RAM asked, 520704 MiB free at most (pve2)."
    return Decision("s", None, counts=counts, reason=reason, suggestion=suggestion)


LESS = Change("memory_mib", 999_999_999, 520_704)
ZONE = Change("availability_zone", "az1", "az2")


@pytest.mark.parametrize(
    ("decision", "flavors", "text"),
    [
        (a_decision(LESS, resources=6), ["m1.large"], f"{ROOM}m1.large would fit."),
        (
            a_decision(LESS, resources=6),
            ["c", "b", "a"],
            f"{ROOM}c, b or a would fit.",
        ),
        (
            a_decision(LESS, Change("vcpus", 2, 1), resources=5, storage_room=1),
            [],
            f"{ROOM}It would fit with a flavor of less RAM and fewer VCPUs.",
        ),
        (
            a_decision(ZONE, LESS, resources=5, availability_zone=1),
            ["m1.large"],
            f"{SOME}m1.large would fit in zone az2.",
        ),
        (a_decision(ZONE, availability_zone=6), [], f"{SOME}It would fit in zone az2."),
        (
            a_decision(Change("image_properties", {"a": "1", "b": "2"}, {"a": "1"}), x=6),
            [],
            f"{SOME}It would fit with an image without b.",
        ),
        (
            a_decision(
                Change("max_server_per_host", 1, 2),
                others=(Way((Change("group", "g", None),), 2, "pve1"),),
                server_group_anti_affinity=6,
            ),
            [],
            f"{SOME}It would fit in a group with max_server_per_host 2 or without its server "
            "group.",
        ),
        (
            a_decision(Change("extra_specs", {"hw:cpu_policy": "dedicated"}, {}), x=6),
            ["m1.small"],
            f"{SOME}m1.small would fit.",
        ),
        (a_decision(node_healthy=6), [], SOME.strip()),
        (a_decision(), [], SOME.strip()),
    ],
)
def test_the_sentence(decision: Decision, flavors: list[str], text: str) -> None:
    found = sentence(decision, flavors)
    assert found == text
    assert not re.search(r"520704|pve|\b6\b|\b3\b|hosts", found)


def an_offer(name: str, **changes: Any) -> Offer:
    sizes = {"vcpus": 1, "memory_mib": 1024, "disk_gib": 10, "extra_specs": {}, **changes}
    return Offer(name, **sizes)


def test_flavors_with_less_of_what_was_too_much_are_tried() -> None:
    image = CreateParams(least_memory_mib=512, least_disk_gib=2)
    within = limits(a_decision(LESS), image)
    assert within == Limits(None, 520_704, None, 512, 2)
    assert limits(a_decision(ZONE), CreateParams()) is None
    assert limits(a_decision(), CreateParams()) is None
    offers = [
        an_offer("tiny", memory_mib=511),
        an_offer("small"),
        an_offer("wide", vcpus=3),
        an_offer("exact", vcpus=2, memory_mib=520_704, disk_gib=20),
        an_offer("one more", memory_mib=520_705),
        an_offer("small disk", disk_gib=1),
        an_offer("large", memory_mib=4096),
    ]
    assert [one.name for one in candidates(offers, within)] == ["exact", "large", "wide", "small"]
    assert len(candidates([an_offer(str(n)) for n in range(50)], within)) == 6
    disk = limits(a_decision(Change("disk_gib", 20, 5)), image)
    assert disk is not None
    both = [an_offer("image's", disk_gib=0), an_offer("ten", disk_gib=10)]
    assert [one.name for one in candidates(both, disk)] == ["image's"]


def test_a_flavor_is_tried_with_all_else_of_the_suggestion() -> None:
    asked = a_request(availability_zone="az1", memory_mib=999_999_999, hints={"group": "g"})
    suggestion = a_decision(ZONE, LESS).suggestion
    assert suggestion is not None
    offer = an_offer("large", memory_mib=4096, extra_specs={"a": "b"})
    tried = with_flavor(asked, suggestion, offer)
    assert (tried.availability_zone, tried.memory_mib, tried.vcpus) == ("az2", 4096, 1)
    assert (tried.extra_specs, tried.hints) == ({"a": "b"}, {"group": "g"})
