"""One's own password: changed, refused, and few that are tried."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.functional.cloud import EmbeddedCloud, eventually
from tests.functional.dashboard.browser import SESSION_COOKIE, Browser

FORM = "/password/change"
OLD, NEW = " first password ", " the next one "


@dataclass
class Somebody:
    """A user of the test's own."""

    browser: Browser
    name: str

    def log_in(self, password: str) -> bool:
        """Return whether a password logs in."""
        self.browser.http.cookies.clear()
        self.browser.log_in(user=self.name, password=password)
        return SESSION_COOKIE in self.browser.http.cookies

    def change(self, old: str, new: str, again: str | None = None) -> str:
        """Send the form."""
        self.browser.get("/password")
        sent = {"old": old, "new": new, "again": new if again is None else again}
        return self.browser.submit(FORM, **sent).text


@pytest.fixture
def somebody(three_nodes: EmbeddedCloud, request: pytest.FixtureRequest) -> Iterator[Somebody]:
    """A member of the demo project."""
    identity = three_nodes.connection("micronova-admin").identity
    project = three_nodes.connection().current_project_id
    name = str(request.node.name).partition("[")[0]
    user = identity.create_user(name=name, password=OLD, domain_id="default")
    identity.assign_project_role_to_user(project, user, identity.find_role("member"))
    made = Somebody(Browser(three_nodes), name)
    assert made.log_in(OLD)
    yield made
    identity.delete_user(user)


def test_all_sessions_end_and_the_new_password_logs_in(
    somebody: Somebody, three_nodes: EmbeddedCloud
) -> None:
    other = Somebody(Browser(three_nodes), somebody.name)
    assert other.log_in(OLD)
    somebody.browser.secrets += [OLD, NEW]
    text, changed = somebody.change(OLD, NEW), time.time()
    assert somebody.browser.path == "/login"
    assert "Your password is changed. Log in with the new one." in text
    somebody.browser.get("/servers")
    assert somebody.browser.path == "/login"
    own = three_nodes.connection("micronova-admin").identity
    headers = {"X-Subject-Token": other.browser.session.token}
    assert own.get("/auth/tokens", headers=headers).status_code == 404, "its token is revoked"
    assert not somebody.log_in(OLD)
    # Keystone ends what it gives in the same second, too
    eventually(lambda: time.time() > changed + 1)
    assert somebody.log_in(NEW)
    somebody.browser.get("/access")
    assert somebody.browser.path == "/access"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (("wrong", NEW), "The present password is wrong."),
        ((OLD.strip(), NEW), "The present password is wrong."),
        ((OLD, NEW, "another"), "The two new passwords differ."),
        ((OLD, NEW, NEW.strip()), "The two new passwords differ."),
        ((OLD, ""), "Give the present password and a new one."),
        (("", NEW), "Give the present password and a new one."),
        ((OLD, "x" * 2049), "Give the present password and a new one."),
    ],
)
def test_what_is_refused_changes_nothing(
    somebody: Somebody, fields: tuple[str, ...], sentence: str
) -> None:
    assert sentence in somebody.change(*fields)
    assert somebody.browser.status == 400
    assert somebody.browser.form(FORM).fields["old"] == "", "no page repeats a password"
    somebody.browser.get("/servers")
    assert somebody.browser.path == "/servers"
    assert somebody.log_in(OLD)


def test_few_passwords_are_tried(somebody: Somebody) -> None:
    found = [somebody.change("wrong", NEW) for _ in range(6)]
    assert "is wrong" in found[4]
    assert "Too many failed logins" in found[5]
    assert "Too many failed logins" in somebody.change(OLD, NEW), "the right one as well"


def test_it_needs_the_form_of_a_session(somebody: Somebody, stranger: Browser) -> None:
    fields = {"old": OLD, "new": NEW, "again": NEW}
    somebody.browser.post(FORM, {**fields, "csrf": "other"})
    assert somebody.browser.status == 403
    foreign = {"Origin": "https://elsewhere.example.org", "Sec-Fetch-Site": "cross-site"}
    somebody.browser.post(FORM, {**fields, "csrf": somebody.browser.csrf}, foreign)
    assert somebody.browser.status == 403
    stranger.post(FORM, fields)
    assert stranger.path == "/login"
    assert somebody.log_in(OLD)
