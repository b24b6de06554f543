"""The page of who did what, when and from where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.browser import Browser
from tests.functional.dashboard.test_pages import create, wait_for
from tests.functional.dashboard.test_volumes import make, until_available


@pytest.fixture
def server(cleared: None, member: Browser) -> str:
    """A server that a member made in the dashboard and stopped there; its path."""
    create(member, "watched")
    path = member.path
    wait_for(member, path, "ACTIVE")
    member.get(f"{path}/stop")
    member.submit(f"{path}/stop")
    wait_for(member, path, "SHUTOFF")
    return path


@pytest.fixture
def namesake(three_nodes: EmbeddedCloud) -> Iterator[Any]:
    """A project of another domain, of the name of the members' project."""
    identity = three_nodes.connection("micronova-admin").identity
    domain = identity.create_domain(name="elsewhere")
    project = identity.create_project(name="demo", domain_id=domain.id)
    yield project
    identity.delete_project(project)
    identity.update_domain(domain, is_enabled=False)
    identity.delete_domain(domain)


def rows(browser: Browser) -> list[str]:
    """Return what each operation's row says."""
    found = re.findall(r'<tr><th scope="row" class="when">.*?</tr>', browser.page.text, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", one).split()) for one in found]


def test_who_did_what_when_and_from_where(server: str, admin: Browser, member: Browser) -> None:
    page = admin.get("/activity")
    assert admin.calls == 1
    newest, before = rows(admin)[:2]
    assert re.fullmatch(
        r"\d+ s ago [0-9-]{10} [0-9:]{8} UTC stop watched ● done demo demo 127\.0\.0\.1 "
        r"req-[0-9a-f-]{36}",
        newest,
    ), newest
    assert "create watched" in before
    assert f"/dashboard{server}" in page.links
    request = newest.rpartition(" ")[2]
    assert f"/dashboard/explain?what={request}" in page.links
    assert "stop" in admin.get(f"/explain?what={request}").text
    member.get("/activity")
    assert member.status == 403


def test_a_volume_and_its_copies_are_named(cleared: None, admin: Browser, member: Browser) -> None:
    path = make(member, name="ledger-data")
    member.get(f"{path}/snapshot")
    member.submit(f"{path}/snapshot", name="ledger-copy")
    until_available(member, path)
    page = admin.get("/activity?limit=2")
    copied, made = rows(admin)
    assert "create snapshot ledger-copy" in copied
    assert "create volume ledger-data" in made
    assert f"/dashboard{path}" in page.links


def test_it_is_filtered_by_names_and_ids(
    server: str, three_nodes: EmbeddedCloud, admin: Browser
) -> None:
    connection = three_nodes.connection()
    project, user = connection.current_project_id, connection.current_user_id
    for query in (f"project={project}", f"user={user}", "project=demo", "user=demo"):
        admin.get(f"/activity?{query}&limit=2")
        assert ["watched" in one for one in rows(admin)] == [True, True], query
        assert admin.calls == (2 if "demo" in query else 1)
    admin.get("/activity?project=demo&user=demo&state=done")
    assert admin.calls == 3
    assert "stop watched" in rows(admin)[0]
    form = admin.form("/activity")
    assert {"project": "demo", "user": "demo", "state": "done"}.items() <= form.fields.items()
    for query in (f"user={project}", "user=admin&project=demo&state=queued", "state=unwinding"):
        assert "None." in admin.get(f"/activity?{query}").text, query
    text = admin.get("/activity?project=nothing&user=nobody").text
    assert "No project is named nothing." in text
    assert "No user is named nobody." in text
    # never all operations where a filter names nothing
    assert rows(admin) == []


def test_it_comes_in_pages(server: str, admin: Browser) -> None:
    def numbers(path: str) -> list[str]:
        admin.get(path)
        return [one.rpartition(" ")[2] for one in rows(admin)]

    both = numbers("/activity?limit=2&user=demo")
    [first] = numbers("/activity?limit=1&user=demo")
    [following] = [one for one in admin.parsed.links if "marker=" in one]
    [second] = numbers(following.removeprefix("/dashboard"))
    assert [first, second] == both
    oldest = numbers("/activity?order=oldest")
    assert oldest[: len(both)] != both


def test_projects_of_one_name_are_distinguished(
    server: str, namesake: Any, admin: Browser, three_nodes: EmbeddedCloud
) -> None:
    page = admin.get("/activity?project=demo&state=done")
    assert "Several projects are named demo." in page.text
    mine = three_nodes.connection().current_project_id
    links = [one for one in page.links if "/activity?project=" in one]
    assert {f"project={one}" in str(links) for one in (mine, namesake.id)} == {True}
    admin.get(next(one for one in links if mine in one).removeprefix("/dashboard"))
    assert "stop watched" in rows(admin)[0]


@pytest.mark.parametrize(
    "query",
    [
        *("state=x", "order=x", "limit=-1", "marker=x", "project=%00", "user=%3Cb%3E"),
        *("project=..%2F..", "user=" + "x" * 300, "marker=-1", "project=a%26name%3Db"),
    ],
)
def test_odd_requests(admin: Browser, query: str) -> None:
    admin.get(f"/activity?{query}")
    assert admin.status in (200, 400)
