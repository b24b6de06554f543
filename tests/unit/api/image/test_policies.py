"""Who sees images."""

from __future__ import annotations

import pytest

from api.image.policies import RULES
from common.context import RequestContext
from tests.fixtures.listings import a_conf
from web.policy import Enforcer


@pytest.mark.parametrize(
    ("roles", "visibility", "allowed"),
    [
        (["reader"], "public", True),
        (["reader"], "private", False),
        (["member"], "public", False),
        (["admin"], "private", True),
        ([], "public", False),
    ],
)
def test_get_image(roles: list[str], visibility: str, allowed: bool) -> None:
    who = RequestContext(user_id="u", project_id="p", roles=roles, overwrite=False)
    target = {"project_id": None, "member_id": None, "visibility": visibility}
    assert Enforcer(a_conf(), RULES).allows(who, "get_image", target) is allowed
