"""What the overview makes of the APIs' answers."""

from __future__ import annotations

from dashboard.cloud import Missing
from dashboard.pages import overview
from dashboard.pages.ledger.operations import entries

_FACTS = {"user_name": "ann", "user_id": "u1", "project_name": "Shop", "project_id": "p1"}


def test_what_an_api_does_not_answer_is_said_once() -> None:
    nothing = Missing("No such resource.", 404)
    whole = overview.whole(*[nothing] * 5)
    assert (whole.tiles, whole.capacity, whole.missing) == ([], [], ["No such resource."])
    assert (whole.waits, whole.down, whole.uncounted) == ([], [], 0)


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
