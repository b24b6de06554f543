from __future__ import annotations

from dashboard.cloud import Missing
from dashboard.pages.identity import roles


def test_the_roles_that_a_role_contains() -> None:
    answer = {
        "role_inferences": [
            {
                "prior_role": {"id": "1", "name": "admin"},
                "implies": [{"id": "3", "name": "member"}, {"id": "2", "name": "manager"}],
            }
        ]
    }
    assert roles.implied_by(answer) == {"1": ["manager", "member"]}
    assert roles.implied_by(Missing("not for you")) == {}


def test_the_roles_that_policies_name() -> None:
    assert {"admin", "member", "reader", "service"} <= roles.NAMED
