"""Application credentials: made, downloaded, used, refused and deleted."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Iterator
from typing import Any

import openstack
import pytest
import yaml

from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.browser import Browser

MADE = "can't be shown again"


@pytest.fixture(autouse=True)
def no_credentials(three_nodes: EmbeddedCloud) -> Iterator[None]:
    """Delete the users' application credentials after a test."""
    yield
    for cloud in ("micronova-demo", "micronova-reader", "micronova-admin"):
        connection = three_nodes.connection(cloud)
        user = connection.current_user_id
        for one in connection.identity.application_credentials(user):
            connection.identity.delete_application_credential(user, one)


def make(browser: Browser, roles: list[str] | None = None, **fields: str) -> str:
    """Make one by the form, with all roles that are offered unless some are named."""
    browser.get("/access")
    offered = browser.session.access["token"]["roles"]
    chosen = [one["id"] for one in offered if roles is None or one["name"] in roles]
    sent: dict[str, Any] = {**browser.form("/access").fields, "role": chosen, **fields}
    return browser.post("/access", sent).text


def files(browser: Browser) -> list[str]:
    """Return the files that the page offers."""
    data = [one for one in browser.parsed.links if one.startswith("data:")]
    return [base64.b64decode(one.partition("base64,")[2]).decode() for one in data]


def connect(text: str) -> openstack.connection.Connection:
    """Connect by a clouds.yaml."""
    [(_, cloud)] = yaml.safe_load(text)["clouds"].items()
    region = cloud.pop("region_name")
    return openstack.connection.Connection(region_name=region, **cloud)


def test_a_secret_is_shown_once_and_logs_in(member: Browser, reader: Browser) -> None:
    assert "No application credentials." in member.get("/access").text
    assert MADE in make(member, ["reader"], name="backup", expires="2099-12-31")
    clouds, openrc = files(member)
    secret = yaml.safe_load(clouds)["clouds"]["micronova"]["auth"]["application_credential_secret"]
    assert secret in member.page.text
    own = connect(clouds)
    assert own.current_project_id == member.session.access["token"]["project"]["id"]
    list(own.compute.servers())
    with pytest.raises(openstack.exceptions.ForbiddenException):
        own.network.create_security_group(name="no")
    exported = dict(
        shlex.split(line)[1].split("=", 1)
        for line in openrc.splitlines()
        if line.startswith("export OS_")
    )
    assert exported["OS_APPLICATION_CREDENTIAL_SECRET"] == secret
    assert exported["OS_AUTH_TYPE"] == "v3applicationcredential"
    assert "OS_PROJECT_NAME" in openrc.partition("\n")[0], "it would mean another scope"
    text = member.get("/access").text
    assert "2099-12-31 23:59:59 UTC" in text
    assert "unrestricted" not in text.partition("Create for")[0]
    assert secret not in member.page.text
    assert "backup" not in reader.get("/access").text, "it is another user's"


def test_the_last_day_is_that_of_the_readers_zone(member: Browser) -> None:
    for name, end, shown in (
        ("tokyo", "2099-12-31T14:59:59.000Z", "2099-12-31 14:59:59 UTC"),
        ("no script", "", "2099-12-31 23:59:59 UTC"),
        ("odd", "9999-12-31T23:59:59-12:00", "2099-12-31 23:59:59 UTC"),
    ):
        assert MADE in make(member, ["reader"], name=name, expires="2099-12-31", expires_at=end)
        assert shown in member.get("/access").text.partition(name)[2].partition("Delete")[0]


def test_nothing_has_the_secret(member: Browser, three_nodes: EmbeddedCloud) -> None:
    make(member, name="quiet")
    clouds, _ = files(member)
    secret = yaml.safe_load(clouds)["clouds"]["micronova"]["auth"]["application_credential_secret"]
    assert secret not in repr(member.session)
    logs = [one for one in three_nodes.state_dir.rglob("*.log") if one.is_file()]
    assert logs
    for one in logs:
        assert secret not in one.read_text(encoding="utf-8", errors="replace"), one


def test_roles_are_chosen_and_unrestricted_is(member: Browser, three_nodes: EmbeddedCloud) -> None:
    connection = three_nodes.connection()
    assert MADE in make(member, name="all", unrestricted="1", description="For all of it")
    [one] = connection.identity.application_credentials(connection.current_user_id)
    assert (one.unrestricted, one.description, one.expires_at) == (True, "For all of it", None)
    text = member.get("/access").text
    assert "unrestricted" in text and "never" in text and "For all of it" in text


@pytest.mark.parametrize(
    ("roles", "fields", "sentence"),
    [
        ([], {"name": "none"}, "Choose at least one role."),
        (None, {"name": ""}, "name"),
        (None, {"name": "x" * 256}, "too long"),
        (None, {"name": "past", "expires": "2001-01-01"}, "xpir"),
        (None, {"name": "odd", "expires": "tomorrow"}, "xpir"),
        (None, {"name": "others", "role": "0" * 32}, "role"),
    ],
)
def test_what_is_refused_is_in_the_form_still(
    member: Browser, roles: list[str] | None, fields: dict[str, str], sentence: str
) -> None:
    assert sentence in make(member, roles, **fields)
    assert 400 <= member.status < 500
    assert "No application credentials." in member.parsed.text
    assert member.form("/access").fields["name"] == fields["name"]


def test_a_name_that_exists(member: Browser) -> None:
    make(member, name="own")
    assert "uplicate" in make(member, name="own")
    assert member.status == 409


def test_one_is_deleted_after_a_page_that_asks(
    member: Browser, reader: Browser, three_nodes: EmbeddedCloud
) -> None:
    make(member, name="own")
    own = connect(files(member)[0])
    list(own.compute.servers())
    connection = three_nodes.connection()
    [one] = connection.identity.application_credentials(connection.current_user_id)
    path = f"/access/{one.id}/delete"
    reader.get(path)
    assert reader.status in (403, 404)
    assert "Refused: " in reader.post(path, {"csrf": reader.csrf}).text
    assert "Delete the application credential own?" in member.get(path).text
    assert "is deleted." in member.submit(path).text
    assert "No application credentials." in member.parsed.text
    member.get(path)
    assert member.status == 404
    member.get("/access/../delete")
    assert "Refused: " in member.post(path, {"csrf": member.csrf}).text


def test_the_password_has_a_file_without_it(member: Browser, three_nodes: EmbeddedCloud) -> None:
    member.get("/access")
    [text] = files(member)
    given = three_nodes.config("micronova-demo").auth
    [(_, cloud)] = yaml.safe_load(text)["clouds"].items()
    assert "password" not in cloud["auth"]
    assert cloud["auth"]["username"] == given["username"]
    cloud["auth"]["password"] = given["password"]
    assert list(connect(yaml.safe_dump({"clouds": {"own": cloud}})).compute.servers()) == []


def test_readers_have_credentials_too(reader: Browser) -> None:
    assert MADE in make(reader, name="mine")
    reader.post("/access", {"csrf": "other", "name": "forged"})
    assert reader.status == 403
