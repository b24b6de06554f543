"""Logins in a file: who, from where, and whether Keystone accepted them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from keystoneauth1.exceptions import Unauthorized
from keystoneauth1.identity.v3 import Password
from keystoneauth1.session import Session

from identity import events
from tests.functional.keystone_fixture import RunningKeystone, access_of

WRONG = "an-other-password"


def logins(keystone: RunningKeystone) -> list[dict[str, Any]]:
    """Return the events of logins."""
    text = (keystone.state_dir / "log" / events.NAME).read_text(encoding="utf-8")
    assert WRONG not in text
    assert not any(password in text for password in keystone.passwords.values())
    found = [json.loads(line) for line in text.splitlines()]
    assert all(one["typeURI"] == "http://schemas.dmtf.org/cloud/audit/1.0/event" for one in found)
    return [one for one in found if one["action"] == "authenticate"]


def refuse(keystone: RunningKeystone) -> None:
    wrong = Password(
        auth_url=keystone.auth_url,
        username="demo",
        password=WRONG,
        user_domain_name="Default",
        project_name="demo",
        project_domain_name="Default",
    )
    with pytest.raises(Unauthorized):
        Session(wrong).get_token()


def test_a_login_is_written_whether_accepted_or_refused(keystone: RunningKeystone) -> None:
    user = access_of(keystone.session()).user_id
    before = len(logins(keystone))
    refuse(keystone)
    keystone.token()
    refused, accepted = logins(keystone)[before:]
    assert (refused["outcome"], accepted["outcome"]) == ("failure", "success")
    for event in (refused, accepted):
        initiator = event["initiator"]
        assert initiator["user_id"] == user
        assert initiator["host"]["address"] == "127.0.0.1"
    assert not (keystone.state_dir / "log" / events.NAME).stat().st_mode & 0o077


def test_the_file_is_rotated_by_renaming(keystone: RunningKeystone) -> None:
    keystone.token()
    file = keystone.state_dir / "log" / events.NAME
    file.rename(file.with_suffix(".log.1"))
    keystone.token()
    assert [one["outcome"] for one in logins(keystone)] == ["success"]
