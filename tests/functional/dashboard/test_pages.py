"""The pages of the dashboard on an embedded cloud, as people use them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from dashboard.pages.meters import CLAIMED
from dashboard.sections import SECTIONS
from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.browser import Browser, Parsed
from tests.functional.dashboard.conftest import LogIn

HEADINGS = {
    "/": "Quota of the project",
    "/servers": "Servers",
    "/keypairs": "Key pairs",
    "/groups": "Scaling groups",
    "/server-groups": "Server groups",
    "/volumes": "Volumes",
    "/networks": "vmbr0",
    "/security-groups": "everything from servers of default",
    "/images": "cirros",
    "/quotas": "Quotas of",
    "/usage": "Usage of",
    "/explain": "Any ID, or a server's name",
    "/explain/decisions": "ID of a request or server",
}
LISTS = tuple(HEADINGS)
MOST_CALLS = {
    page.path: page.calls for section in SECTIONS for page in section.pages if page.method == "GET"
}


def create(browser: Browser, called: str, flavor: str = "m1.nano", **fields: str) -> Parsed:
    """Create a server by the form; the page that follows."""
    browser.get("/servers/create")
    choices = browser.form("/servers/create").choices
    [sized] = [one for one in choices["flavor"] if one.partition(":")[0] == flavor]
    chosen = {
        "name": called,
        "image": choices["image"]["cirros"],
        "flavor": choices["flavor"][sized],
        "network": choices["network"]["vmbr0"],
    }
    return browser.submit("/servers/create", **{**chosen, **fields})


def is_at_rest(page: str, status: str) -> bool:
    """Return whether the page of a server says a status, and doesn't refresh itself any more."""
    live = page.partition('id="live"')[2].partition(">")[0]
    return "hx-get" not in live and re.search(rf"</span> {status}</span>", page) is not None


def wait_for(browser: Browser, path: str, status: str) -> Parsed:
    """Wait until a server has a status."""
    return browser.until(path, lambda _: is_at_rest(browser.page.text, status))


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("person", ["member", "reader", "admin"])
def test_everybody_sees_the_lists(people: LogIn, person: str, path: str) -> None:
    browser = people(person)
    found = browser.get(path)
    assert (browser.status, browser.path) == (200, path)
    assert HEADINGS[path] in found.text
    assert browser.calls <= MOST_CALLS[path]
    section = path if path == "/" else f"/{path.split('/')[1]}"
    assert f'href="/dashboard{section}" aria-current="page"' in browser.page.text


def test_an_administrator_sees_the_capacity(admin: Browser, member: Browser) -> None:
    text = admin.get("/").text
    assert re.search(rf"Nodes up 3 of 3 VCPUs {CLAIMED} \d+ of \d+ \d+ free in all; at most", text)
    assert "Nodes up" not in member.get("/").text


def test_networks_come_in_pages(member: Browser) -> None:
    found = member.get("/networks?limit=1")
    assert "vmbr0" in found.text
    [following] = [one for one in found.links if "marker=" in one]
    assert "No networks." in member.get(following.removeprefix("/dashboard")).text


def test_the_life_of_a_server(cleared: None, member: Browser, reader: Browser) -> None:
    text = create(member, "web-1").text
    path = member.path
    assert re.fullmatch(r"/servers/[0-9a-f-]{36}", path)
    assert "web-1 is being created." in text
    assert "web-1" in text

    text = wait_for(member, path, "ACTIVE").text
    assert member.calls == MOST_CALLS["/servers/{server_id:uuid}"]
    assert "is being created" not in text
    assert "create ● done" in text
    assert "create VM" in text
    assert "building (spawning) → active" in text
    assert "UPID:" not in text
    assert member.page.text.count("<rect") > 3
    uuid = path.rpartition("/")[2]
    explain(member, path)
    look_as_reader(reader, path)
    list_and_refresh(member, uuid)
    stop_and_start(member, path)
    open_console(member, path)
    assert in_use(member, "/usage") == ["1", "1", "0.12"]
    assert member.page.text.count('<svg class="curve"') == 3
    # more, where others lived a few minutes before
    for most in ("[1-9][0-9]*", "[1-9][0-9.]+ [MG]iB"):
        assert re.search(
            rf"until [0-9-]+ [0-9:]+ UTC, in use at most {most}</title>", member.page.text
        )
    delete(member, path)
    look_at_the_usage(member, reader)

    text = member.get("/explain", params={"what": uuid}).text
    assert "delete ● done" in text
    assert "create ● done" in text


def explain(member: Browser, path: str) -> None:
    page = member.get("/explain", params={"what": path.rpartition("/")[2]})
    assert "Create of server web-1 is done." in page.text
    assert f"/dashboard{path}" in page.links
    assert member.calls == 2


def look_as_reader(reader: Browser, path: str) -> None:
    found = reader.get(path)
    assert reader.status == 200
    assert {one.action for one in found.forms} == {
        "/dashboard/project",
        "/dashboard/search",
        "/dashboard/theme",
        "/dashboard/logout",
    }
    below = {one for one in found.links if one.startswith(f"/dashboard{path}/")}
    shown = {"charts", "network", "storage", "history", "metadata"}
    assert below == {f"/dashboard{path}/{one}" for one in shown}


def list_and_refresh(member: Browser, uuid: str) -> None:
    assert "web-1" in member.get("/servers", params={"name": "web"}).text
    assert "web-1" not in member.get("/servers", params={"name": "nothing"}).text
    assert "web-1" in member.get("/servers?status=ACTIVE&sort=display_name&dir=asc").text
    assert "web-1" not in member.get("/servers?status=ERROR").text
    assert "web-1" in member.get("/explain?what=web-1").text
    member.get("/servers")
    assert f'name="server" id="c-{uuid}"' in member.page.text


def in_use(browser: Browser, path: str) -> list[str]:
    """Return how much is in use now: servers, VCPUs, GiB of memory."""
    browser.get(path)
    assert browser.status == 200
    return re.findall(r"<strong>([0-9.]+)</strong>", browser.page.text)


def look_at_the_usage(member: Browser, reader: Browser) -> None:
    """A server that is gone has still used something; nobody else sees it."""
    for browser in (member, reader):
        for period in ("day", "week", "month", "nothing"):
            path = f"/usage?period={period}&all_tenants=1&project=another"
            assert in_use(browser, path) == ["0", "0", "0"]
            assert "Usage of demo" in browser.parsed.text
            assert browser.calls == 1
            assert not browser.form("/usage").fields.keys() & {"all_tenants", "project"}
        drawn = re.findall(r'<g class="bands">.*?</g>', browser.page.text)
        last = [re.findall(r"in use at most ([^<\"]+)</title>", one)[-1] for one in drawn]
        assert [one not in ("0", "0 B") for one in last] == [True] * 3
        assert "UTC" in browser.parsed.text.rpartition("All numbers as a table")[2]


def stop_and_start(member: Browser, path: str) -> None:
    member.get(path)
    assert not member.has_form(f"{path}/start")
    member.get(f"{path}/stop")
    assert "Stop web-1?" in member.parsed.text
    assert "what isn't saved is lost" in member.parsed.text
    assert "Under way: The server is stopping." in member.submit(f"{path}/stop").text
    assert member.path == path
    wait_for(member, path, "SHUTOFF")
    assert f"/dashboard{path}/stop" not in member.get(path).links
    member.submit(f"{path}/start")
    wait_for(member, path, "ACTIVE")


def open_console(member: Browser, path: str) -> None:
    found = member.submit(f"{path}/console")
    assert (member.status, member.calls) == (200, 3)
    [frame] = found.frames
    parts = urlsplit(frame)
    origin = f"{parts.scheme}://{parts.netloc}"
    policy = member.page.headers["Content-Security-Policy"]
    assert policy.endswith(f"; frame-src {origin}")
    answer = requests.get(frame, timeout=30)
    assert answer.status_code == 200
    assert "DENY" not in answer.headers.get("X-Frame-Options", "").upper()


def delete(member: Browser, path: str) -> None:
    member.get(path)
    assert not member.has_form(f"{path}/delete")
    assert "can't be restored" in member.get(f"{path}/delete").text
    assert "The server is being deleted." in member.submit(f"{path}/delete").text
    assert member.path == "/servers"
    member.until(path, lambda _: member.status == 404)
    assert "could not be found" in member.parsed.text


def test_the_forms_of_actions(cleared: None, member: Browser) -> None:
    create(member, "web-2")
    path = member.path
    wait_for(member, path, "ACTIVE")
    for action, offered in (("resize", "m1.small"), ("rebuild", "debian-12")):
        member.get(f"{path}/{action}")
        [choices] = member.form(f"{path}/{action}").choices.values()
        assert offered in choices
    member.get(f"{path}/resize")
    flavor = member.form(f"{path}/resize").choices["flavorRef"]
    text = member.submit(f"{path}/resize", flavorRef=flavor["m1.tiny"]).text
    assert "Under way: The server is being resized." in text
    wait_for(member, path, "VERIFY_RESIZE")
    for action, said in (("revert-resize", "It is stopped"), ("confirm-resize", "The way back")):
        assert not member.has_form(f"{path}/{action}")
        text = member.get(f"{path}/{action}").text
        assert "web-2?" in text
        assert said in text
        member.get(path)
    member.get(f"{path}/confirm-resize")
    member.submit(f"{path}/confirm-resize")
    assert "m1.tiny" in wait_for(member, path, "ACTIVE").text
    member.get(f"{path}/explode")
    assert member.status == 404
    text = member.post(f"{path}/unpause", {"csrf": member.csrf}).text
    assert "Refused: Cannot 'unpause' instance" in text
    assert "req-" in text


def test_a_volume_from_create_to_delete(cleared: None, member: Browser) -> None:
    create(member, "web-3")
    path = member.path
    wait_for(member, path, "ACTIVE")
    server = path.rpartition("/")[2]
    member.get("/volumes/create")
    assert "The volume is being created." in member.submit("/volumes", name="data", size="1").text
    volume = member.path
    member.until("/volumes", lambda page: "available" in page.text)
    member.get(f"{volume}/attach")
    assert member.form(f"{volume}/attach").choices["server"] == {"web-3": server}
    assert "is being attached" in member.submit(f"{volume}/attach", server=server).text
    member.until("/volumes", lambda page: "in-use" in page.text)
    assert "data" in member.get(f"{path}/storage").text
    detach = f"{path}/volumes/{volume.rpartition('/')[2]}/detach"
    assert "Detach data from web-3?" in member.get(detach).text
    assert "is being detached" in member.submit(detach).text
    member.until("/volumes", lambda page: "available" in page.text)
    member.get(f"{volume}/delete")
    assert "The volume is being deleted." in member.submit(f"{volume}/delete").text
    member.until("/volumes", lambda page: "No volumes." in page.text)
    assert "create" in member.get(f"/explain?what={volume.rpartition('/')[2]}").text


def test_what_the_api_says_of_volumes(member: Browser) -> None:
    for size in ("0", "x", "99999999999"):
        member.get("/volumes/create")
        assert "Refused: " in member.submit("/volumes", name="odd", size=size).text
        assert member.form("/volumes").fields["size"] == size
        assert "No volumes." in member.get("/volumes").text


@pytest.fixture
def vast(three_nodes: EmbeddedCloud) -> Iterator[str]:
    """A flavor that no host has room for."""
    compute = three_nodes.connection("micronova-admin").compute
    made = compute.create_flavor(name="vast", vcpus=1, ram=128, disk=1_000_000)
    yield "vast"
    compute.delete_flavor(made)


def test_a_failed_create_says_why(cleared: None, vast: str, member: Browser) -> None:
    create(member, "too-large", vast)
    path = member.path
    text = wait_for(member, path, "ERROR").text
    assert "No valid host was found" in text
    assert "Scheduler: no host" in text
    assert "✕ failed" in text
    [request] = set(re.findall(r"req-[0-9a-f-]{36}", member.page.text))
    assert "No valid host was found" in member.get("/explain", params={"what": request}).text
    assert "too-large ✕ ERROR" in member.get("/").text


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"count": "100"}, "Quota exceeded for"),
        ({"name": "  "}, "Invalid input for field/attribute name"),
        ({"count": "many"}, "Invalid input for field/attribute"),
        ({"count": "9" * 5000}, "min_count and max_count may be"),
        ({"image": "nothing"}, "Invalid"),
        ({"network": "11111111-1111-1111-1111-111111111111"}, "could not be found"),
        ({"key": "nobody's"}, "Invalid key_name provided."),
    ],
)
def test_a_refused_create_shows_the_form_again(
    member: Browser, fields: dict[str, str], sentence: str
) -> None:
    text = create(member, "<refused>", **fields).text
    assert sentence in text
    assert 400 <= member.status < 500
    form = member.form("/servers/create")
    assert form.fields["name"] == fields.get("name", "<refused>").strip()
    assert "No servers." in member.get("/servers").text


def test_several_servers_and_pages_of_them(cleared: None, member: Browser) -> None:
    create(member, "many", count="3")
    assert member.path == "/servers"
    seen: list[str] = []
    path = "/servers?limit=1&sort=display_name&dir=asc"
    while path:
        found = member.get(path)
        seen += [one for one in found.links if re.search("/servers/[0-9a-f-]{36}$", one)]
        following = [one for one in found.links if "marker=" in one]
        path = following[0].removeprefix("/dashboard") if following else ""
    assert len(seen) == len(set(seen)) == 3


def test_an_administrator_sees_all_projects(
    cleared: None, member: Browser, admin: Browser
) -> None:
    create(member, "theirs")
    path = member.path
    assert "theirs" not in admin.get("/servers").text
    assert "theirs" in admin.get("/servers?all_tenants=1").text
    text = wait_for(admin, path, "ACTIVE").text
    assert "theirs" in text
    assert "UPID:" in text
    demo = member.session.access["token"]["project"]["id"]
    assert in_use(admin, "/usage?all_tenants=1") == ["1", "1", "0.12"]
    assert "Usage of all projects" in admin.parsed.text
    assert f"/dashboard/usage?period=day&project={demo}" in admin.parsed.links
    assert in_use(admin, f"/usage?project={demo}") == ["1", "1", "0.12"]
    assert "Usage of demo" in admin.parsed.text
    assert admin.form("/usage").fields["project"] == demo
    for odd in (
        "/usage?project=..",
        "/usage?project=..%2F..%2Fflavors",
        "/explain/decisions?what=..",
    ):
        admin.get(odd)
        assert admin.status == 404
    assert in_use(admin, "/usage?project=nobody") == ["0", "0", "0"]
    admin.get(path)
    assert admin.has_form(f"{path}/live-migrate")
    member.get(path)
    assert not member.has_form(f"{path}/live-migrate")


def test_the_theme_is_kept(stranger: Browser) -> None:
    stranger.log_in()
    stranger.get("/networks")
    stranger.submit("/theme", theme="dark")
    assert stranger.path == "/networks"
    assert 'data-theme="dark"' in stranger.page.text
    stranger.submit("/theme", theme="<script>")
    assert 'data-theme="dark"' in stranger.page.text


def test_another_project_of_the_user(three_nodes: EmbeddedCloud, stranger: Browser) -> None:
    stranger.log_in("admin")
    choices = stranger.form("/project").choices["project"]
    assert set(choices) >= {"admin", "demo"}
    before = stranger.name
    stranger.submit("/project", project=choices["demo"])
    assert stranger.status == 200
    assert stranger.name != before
    assert stranger.session.access["token"]["project"]["name"] == "demo"
    other: Any = three_nodes.connection("micronova-admin").identity.find_project("service")
    stranger.submit("/project", project=other.id if other else "nothing")
    assert stranger.status in (401, 403)
    assert stranger.session.access["token"]["project"]["name"] == "demo"
