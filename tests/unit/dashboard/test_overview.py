"""What the overview makes of the APIs' answers."""

from __future__ import annotations

from dashboard.cloud import Missing
from dashboard.pages import overview
from dashboard.pages.ledger.operations import entries

_FACTS = {"user_name": "ann", "user_id": "u1", "project_name": "Shop", "project_id": "p1"}

_NONE = {"total": 0, "used": 0, "free": 0, "most_free": None}
_SUMS = {
    "hosts_taking_servers": 28,
    "storage_gib": _NONE,
    "resources": [{"resource_class": name, **_NONE} for name in ("VCPU", "MEMORY_MB")],
}


def test_what_an_api_does_not_answer_is_said_once() -> None:
    nothing = Missing("No such resource.", 404)
    whole = overview.whole(*[nothing] * 6)
    assert (whole.tiles, whole.capacity, whole.missing) == ([], [], ["No such resource."])
    assert (whole.waits, whole.down, whole.uncounted) == ([], [], 0)


def test_nodes_that_are_off_are_listed_however_many_others_are_unwell() -> None:
    total = {"hosts": 40, "hosts_up": 28}
    nothing = Missing("No such resource.", 404)
    more = [{"rel": "next", "href": "http://api/queues?marker=h10"}]
    ten = [{"host": f"pve{number}"} for number in range(10)]
    found = overview.whole(
        *({"total_capacity": {**total, **_SUMS}}, nothing, nothing),
        *({"hosts": ten, "hosts_links": more}, {"hosts": ten, "hosts_links": more}, nothing),
    )
    assert (found.tiles[0].number, len(found.down), found.more_down) == (12, 10, "2 more")
    assert (len(found.unwell), found.more_unwell) == (10, "more")
    all_of_them = overview.whole(*[nothing] * 3, {"hosts": ten}, {"hosts": ten}, nothing)
    assert (all_of_them.more_down, all_of_them.more_unwell) == ("", "")


def test_an_operation_leads_to_what_it_is_about() -> None:
    about = {"resource_type": "server", "resource_id": "s1", "resource_name": "web-1"}
    nameless = {"resource_type": "host", "resource_id": "a/b", "resource_name": None}
    pageless = {"resource_type": "backup", "resource_id": "b1", "resource_name": None}
    by_itself = dict.fromkeys(_FACTS, None) | {"user_id": "", "project_id": "p1"}
    found = entries(
        {"operations": [{**about, **_FACTS}, {**nameless, **by_itself}, {**pageless, **_FACTS}]}
    )
    assert [(one.subject, one.page) for one in found] == [
        ("web-1", "/servers/s1"),
        ("a/b", "/nodes/a%2Fb"),
        ("b1", ""),
    ]
    assert [(one.user, one.project) for one in found[:2]] == [
        ("ann", "Shop"),
        ("the cloud itself", "p1"),
    ]
