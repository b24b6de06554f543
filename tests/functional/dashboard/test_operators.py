"""The pages of those who run a cloud: nodes, decisions, audit, migrations, services."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from dashboard.rights import May
from dashboard.sections import SECTIONS
from tests.functional import programs
from tests.functional.audit.leaks import Proxmox
from tests.functional.cloud import EmbeddedCloud, eventually
from tests.functional.dashboard.browser import Browser, Parsed
from tests.functional.dashboard.conftest import LogIn
from tests.functional.dashboard.test_security import UUID, path_of

HEADINGS = {
    "/aggregates": "Availability zones",
    "/flavors": "Create flavor",
    "/projects": "Create project",
    "/users": "Create user",
    "/nodes": "Storages with the least room",
    "/nodes/pve1": "Tasks in Proxmox VE",
    "/storages": "a shared one once",
    "/trend": "As Proxmox VE recorded it, summed up: all 4 storages and all 3 nodes.",
    "/nodes/pve1/drain": "Drain pve1 ?",
    "/nodes/pve1/loss": "would all find another host",
    "/migrations": "Drains and rebalances",
    "/migrations/rebalance": "Plan of a rebalance",
    "/activity": "Who did what",
    "/audit": "Orphans: things without an owner",
    "/services": "nova-scheduler",
    "/explain/what-if": "nothing is created",
}
PAGES = {
    page.path: page
    for section in SECTIONS
    for page in section.pages
    if page.method == "GET" and page.may in (May.OPERATE, May.MANAGE)
}


@pytest.mark.parametrize("path", HEADINGS)
def test_an_administrator_sees_the_pages(admin: Browser, path: str) -> None:
    found = admin.get(path)
    assert (admin.status, admin.path) == (200, path)
    assert HEADINGS[path] in found.text
    assert admin.calls <= PAGES[path.replace("/pve1", "/{host}")].calls
    assert f'href="/dashboard/{path.split("/")[1]}" aria-current="page"' in admin.page.text


@pytest.mark.parametrize("person", ["member", "reader"])
def test_nobody_else_does(people: LogIn, person: str) -> None:
    browser = people(person)
    links = browser.get("/").links
    for page in PAGES.values():
        path = path_of(page)
        assert f"/dashboard{path}" not in links
        assert "Your role doesn't allow this." in browser.get(path).text
        assert (browser.status, browser.calls) == (403, 0)


POSTS = [
    path_of(page)
    for section in SECTIONS
    for page in section.pages
    if page.method == "POST" and page.may is May.OPERATE
]


@pytest.mark.parametrize("path", POSTS)
def test_nobody_else_changes_anything(member: Browser, path: str) -> None:
    found = member.post(path, {"csrf": member.csrf, "name": "mine"})
    assert "Your role doesn't allow this." in found.text
    assert (member.status, member.calls) == (403, 0)


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/nodes?limit=0",
            "/nodes?marker=nothing",
            "/nodes?name=%00",
            "/nodes?name=[",
            "/nodes/x",
        ),
        *("/nodes/%00", "/nodes/..%2fservers", "/nodes/x/drain", "/nodes/x/loss", "/nodes/pve"),
        *("/migrations?marker=nothing", "/migrations?server=x", "/migrations?status=%00"),
        *("/migrations/bulk/0", "/migrations/bulk/99999999999999999999", "/migrations/bulk/x"),
        *("/migrations/rebalance?moves=x", "/migrations/rebalance?moves=99999"),
        *("/audit?show=x", "/audit?kind=%00", "/audit/0", "/audit/99999999999999999999"),
        *("/audit/x", "/audit/1/explode", "/services?first=-1", "/services?first=99999999"),
        *("/services?host=%00", f"/services/{UUID}/disable", f"/services/{UUID}/explode"),
        *("/explain/what-if?flavor=x", "/explain/what-if?flavor=%00&image=%00&count=many"),
        *("/explain/what-if?like=%00", f"/explain/what-if?like={UUID}"),
        *("/explain/what-if?flavor=42&hints=%00%3D%0A%3D%3D", "/explain/decisions?what=%00"),
    ],
)
def test_odd_requests(admin: Browser, path: str) -> None:
    admin.get(path)
    assert admin.status in (200, 400, 404)


# --- nodes


@pytest.fixture
def crowd(cleared: None, three_nodes: EmbeddedCloud) -> list[Any]:
    """Servers, all on one node; the last one is suspended."""
    admin = three_nodes.connection("micronova-admin").compute
    made = [
        admin.create_server(
            name=f"crowd-{number}",
            image_id=next(three_nodes.connection().image.images(name="cirros")).id,
            flavor_id=admin.find_flavor("m1.tiny").id,
            networks="none",
            availability_zone="nova:pve1",
        )
        for number in range(4)
    ]
    made = [admin.wait_for_server(one, wait=120) for one in made]
    admin.suspend_server(made[-1])
    admin.wait_for_server(made[-1], "SUSPENDED", wait=60)
    return made


@pytest.fixture
def slow_migrations(three_nodes: EmbeddedCloud) -> Iterator[None]:
    """Copying takes long, until it is asked for no more."""
    three_nodes.control("POST", "faults", action="migration-slow", seconds=600)
    yield
    three_nodes.control("DELETE", "faults")


def follow(admin: Browser, path: str) -> Parsed:
    """Follow a bulk migration to its end."""
    return admin.until(path, lambda _: "hx-get" not in admin.page.text)


def test_a_rebalance_and_a_drain(crowd: list[Any], admin: Browser) -> None:
    text = admin.get(f"/servers/{crowd[-1].id}").text
    assert "Can't be moved it is suspended: resume it" in text
    assert not admin.has_form("/live-migrate")
    text = admin.get("/nodes/pve1").text
    assert all(one.name in text for one in crowd)
    assert "If pve1 failed Its 4 servers" in admin.get("/nodes/pve1/loss").text

    admin.get("/nodes/pve1")
    assert '<details class="fold" open data-folds><summary><h2 id="tasks">' in admin.page.text
    text = admin.get("/migrations/rebalance?moves=1").text
    assert "1 move of" in text
    asked = {"csrf": admin.csrf, "limit": "1", "at_once": "2"}
    assert asked.items() <= admin.parsed.forms[-1].fields.items()
    text = admin.post("/migrations/rebalance", asked).text
    assert "Under way: The servers are being moved." in text
    path = admin.path
    assert re.fullmatch(r"/migrations/bulk/\d+", path)
    assert "1 moved, none remain." in follow(admin, path).text

    text = admin.get("/nodes/pve1/drain").text
    assert text.count("while it runs") == 2
    assert "it is suspended: resume it" in text
    text = admin.submit("/nodes/pve1/drain").text
    assert "Under way: pve1 is disabled, and its servers are being moved." in text
    text = follow(admin, admin.path).text
    assert "2 moved, 1 remain (1: it is suspended: resume it)." in text
    assert text.count("● moved") == 2
    assert "✕ blocked" in text
    refused = admin.post(f"{admin.path}/pause", {"csrf": admin.csrf}).text
    assert "Refused: " in refused

    text = admin.get("/nodes/pve1").text
    assert "◆ disabled" in text
    assert "2 moved, 1 remain" in text
    [form] = [one.action for one in admin.parsed.forms if one.action.endswith("/enable")]
    text = admin.submit(form.removeprefix("/dashboard")).text
    assert admin.path == "/nodes/pve1"
    assert "Done: The host gets new servers again." in text
    assert "● enabled" in text

    found = admin.get("/migrations?type=live-migration&status=completed")
    assert found.text.count("● completed") >= 3
    assert f"/dashboard/servers/{crowd[0].id}" in found.links
    assert crowd[0].name in found.text
    assert crowd[0].id not in found.text
    assert {"/dashboard/nodes/pve1"} < {one for one in found.links if "/nodes/pve" in one}
    following = admin.get("/migrations?limit=1").links
    assert any("marker=" in one for one in following)
    assert "rebalance ● done" in admin.parsed.text


def test_a_node_that_is_off_says_so_wherever_it_shows(
    cleared: None, three_nodes: EmbeddedCloud, admin: Browser
) -> None:
    said = "The node is offline."
    three_nodes.control("POST", "faults", action="node-down", node="pve3")
    try:
        admin.until("/nodes", lambda page: said in page.text)
        for path in ("/", "/nodes/pve3", "/nodes?name=pve3", "/services?host=pve3"):
            assert said in admin.get(path).text, path
        assert said not in admin.get("/nodes/pve1").text
        environment = three_nodes.environment("micronova")
        listed = programs.run("micronova", ("node", "list", "-f", "json"), environment)
        assert {row["Host"]: row["Health"] for row in json.loads(listed.stdout)} == {
            **dict.fromkeys(("pve1", "pve2"), "ok"),
            "pve3": said,
        }
    finally:
        three_nodes.control("DELETE", "faults")
    admin.until("/nodes", lambda page: said not in page.text)
    assert said not in admin.get("/").text


def test_queues_are_what_the_agents_said_last(
    cleared: None, three_nodes: EmbeddedCloud, admin: Browser
) -> None:
    idle = r"Operations \(shared\) 0 of 32 none As the node's agent said .{,20} ago"
    admin.until("/nodes/pve1", lambda page: re.search(idle, page.text) is not None)
    assert len(re.findall(r"0 of 32", admin.get("/nodes?limit=2").text)) == 2
    [following] = [one for one in admin.parsed.links if "marker=" in one]
    assert len(re.findall(r"0 of 32", admin.get(following.removeprefix("/dashboard")).text)) == 1
    assert "0 of 32" in admin.get("/nodes?name=pve3").text
    shown = three_nodes.connection("micronova-admin").compute.get("/queues?host=pve2").json()
    assert [one["name"] for one in shown["hosts"][0]["queues"]] == ["operations"]


def test_a_drain_is_paused_resumed_and_cancelled(
    crowd: list[Any], slow_migrations: None, admin: Browser
) -> None:
    admin.get("/nodes/pve1/drain")
    admin.submit("/nodes/pve1/drain", at_once="1")
    path = admin.path
    admin.until(path, lambda page: "◌ moving" in page.text)
    assert "hx-get" in admin.page.text
    assert "No more moves begin for now" in admin.submit(f"{path}/pause").text
    assert "paused" in admin.parsed.text
    assert not admin.has_form(f"{path}/pause")
    assert "Moves begin again." in admin.submit(f"{path}/resume").text
    assert admin.has_form(f"{path}/pause")
    assert "it ends with those under way" in admin.submit(f"{path}/cancel").text
    [running] = re.findall(r'action="/dashboard(/migrations/of/[^"]+/abort)"', listed(admin))
    text = admin.submit(running).text
    assert "Refused: Cannot abort live migration" in text
    assert "The agent's token lacks Sys.Modify on /." in text
    admin.cloud.control("DELETE", "faults")
    follow(admin, path)
    assert "✕ failed" in admin.parsed.text
    admin.get("/nodes/pve1")
    [form] = [one.action for one in admin.parsed.forms if one.action.endswith("/enable")]
    admin.submit(form.removeprefix("/dashboard"))


def listed(admin: Browser) -> str:
    """Return the list of migrations once the only one of a drain is being copied."""
    admin.until("/migrations", lambda _: admin.page.text.count("/abort") == 1)
    return admin.page.text


def test_what_the_api_says_of_a_drain(admin: Browser) -> None:
    for at_once in ("0", "many", "1000"):
        admin.get("/nodes/pve3/drain")
        assert "Refused: " in admin.submit("/nodes/pve3/drain", at_once=at_once).text
        assert admin.path == "/nodes/pve3/drain"
    assert "● enabled" in admin.get("/nodes/pve3").text
    admin.get("/nodes?name=pve2")
    assert admin.page.text.count('<th scope="row"><a href="/dashboard/nodes/') == 1
    assert "No hypervisor matching" in admin.get("/nodes?name=nothing").text


@pytest.fixture
def manager(three_nodes: EmbeddedCloud) -> Iterator[Browser]:
    """Somebody who manages the member's project."""
    identity = three_nodes.connection("micronova-admin").identity
    project, role = identity.find_project("demo"), identity.find_role("manager")
    user = identity.create_user(name="boss", password=UUID, domain_id=project.domain_id)
    identity.assign_project_role_to_user(project, user, role)
    browser = Browser(three_nodes)
    browser.log_in(user="boss", password=UUID, project="demo")
    yield browser
    identity.delete_user(user)


def test_a_manager_sees_the_migrations_of_the_project(
    cleared: None, manager: Browser, admin: Browser
) -> None:
    compute = manager.cloud.connection().compute
    server = compute.create_server(
        name="managed",
        image_id=manager.cloud.connection().image.find_image("cirros").id,
        flavor_id=compute.find_flavor("m1.nano").id,
        networks="none",
    )
    compute.wait_for_server(server, wait=60)
    path = f"/servers/{server.id}"
    manager.get(path)
    assert (
        "Under way: The server is being moved while it runs."
        in manager.submit(f"{path}/live-migrate").text
    )
    manager.until("/migrations", lambda page: "● completed" in page.text)
    assert manager.calls == 2
    assert f"/dashboard{path}" in manager.parsed.links
    assert server.name in manager.parsed.text
    assert "pve" not in manager.parsed.text
    assert "Drains and rebalances" not in manager.parsed.text
    assert "/dashboard/nodes" not in manager.parsed.links
    for operators in ("/nodes", "/migrations/rebalance", "/migrations/bulk/1", "/audit"):
        manager.get(operators)
        assert manager.status == 403
    assert "pve" in admin.get(f"/migrations?server={server.id}").text


# --- storages and tasks


def test_storages_are_listed_once_and_lead_to_their_year(admin: Browser, member: Browser) -> None:
    page = admin.get("/storages")
    assert re.search(r"Storages\b[^0-9]* [0-9.]+ (GiB )?of [0-9.]+ TiB", page.text)
    names = re.findall(r"charts\?storage=(\w+)&amp;period=year", admin.page.text)
    assert names.count("shared") == 1
    assert names.count("local") == 3
    assert re.search(r"shared sim1, 3 nodes \w+ shared", page.text)
    [following] = [one for one in admin.get("/storages?limit=1").links if "marker=" in one]
    text = admin.get(following.removeprefix("/dashboard")).text
    assert "local pve2" in text
    assert "local pve1" not in text
    assert "/dashboard/storages" not in member.get("/").links


def test_a_node_shows_its_tasks_and_leads_to_proxmox_ve(
    crowd: list[Any], three_nodes: EmbeddedCloud, admin: Browser
) -> None:
    page = admin.get("/nodes/pve1")
    assert admin.calls == 7
    assert re.search(r"\d+ s ago qm(create|start|suspend) \d{6} \S+!\S+ .{,20}● done", page.text)
    assert "https://pve.example.org:8006/#v1:0:=node%2Fpve1" in page.links
    # what nobody can read is said, and the rest is shown
    three_nodes.control("POST", "faults", action="fail", path="nodes/pve1/tasks", times=0)
    try:
        page = admin.get("/nodes/pve1")
        assert "Not known: Tasks of pve1 can't be read" in page.text
        assert "https://pve.example.org:8006/#v1:0:=node%2Fpve1" in page.links
        assert "crowd-0" in page.text
    finally:
        three_nodes.control("DELETE", "faults")


# --- who waits for room


def test_those_that_wait_are_listed_with_what_would_take_them(
    cleared: None, three_nodes: EmbeddedCloud, member: Browser, admin: Browser
) -> None:
    assert "Nobody waits." in member.get("/servers/waiting").text
    operator = three_nodes.connection("micronova-admin").compute
    found = operator.get("/os-hypervisors/detail", microversion="2.87").json()
    nodes = [one["memory_mb"] for one in found["hypervisors"]]
    large = operator.create_flavor(name="large", ram=max(nodes) * 6 // 10, vcpus=1, disk=1)
    compute = three_nodes.connection().compute
    image = next(three_nodes.connection().image.images(name="cirros")).id
    quotas = f"/os-quota-sets/{three_nodes.connection().current_project_id}"
    operator.put(quotas, json={"quota_set": {"ram": -1}})
    asked = {"image_id": image, "flavor_id": large.id, "networks": "none"}
    hints = {"micronova:wait": 600}
    made = [
        compute.create_server(name=f"large-{number}", scheduler_hints=hints, **asked)
        for number in range(len(nodes) + 1)
    ]
    try:
        page = member.until("/servers/waiting", lambda page: "1 of 1" in page.text)
        assert f"{large.ram} MEMORY_MB" in page.text
        assert "More hosts would do" not in page.text and member.calls == 1
        assert sum(f"/dashboard/servers/{one.id}" in page.links for one in made) == 1
        text = admin.get("/servers/waiting").text
        assert three_nodes.connection().current_project_id in text
        assert "1 like pve" in text and "for 1 server" in text
    finally:
        for one in made:
            compute.delete_server(one)
        operator.delete_flavor(large)
        operator.delete(quotas)
    member.until("/servers/waiting", lambda page: "Nobody waits." in page.text)


# --- services


def test_a_service_is_disabled_forced_down_and_back(admin: Browser) -> None:
    admin.get("/services?host=pve3")
    [disable] = [one for one in admin.parsed.links if one.endswith("/disable?host=pve3")]
    path = disable.removeprefix("/dashboard").removesuffix("/disable?host=pve3")
    assert "those that are there stay" in admin.get(f"{path}/disable").text
    text = admin.submit(f"{path}/disable", reason="a new <kernel>").text
    assert "◆ disabled a new <kernel>" in text
    assert "may be evacuated" in admin.get(f"{path}/force-down?node=pve3").text
    text = admin.submit(f"{path}/force-down").text
    assert admin.path == "/nodes/pve3"
    assert "✕ forced down" in text
    text = admin.get("/services").text
    assert "1 of 6 are down." in text
    assert text.index("pve3") < text.index("pve1")
    admin.submit(f"{path}/force-up")
    assert "● enabled" in admin.submit(f"{path}/enable").text
    admin.until("/services", lambda page: "All 6 are up." in page.text)
    assert "/dashboard/services?limit=2&first=2" in admin.get("/services?limit=2").links[-1:]
    for refused in (f"/services/{UUID}/disable", f"/services/{UUID}/enable"):
        admin.post(refused, {"csrf": admin.csrf})
        assert "Refused: " in admin.parsed.text


# --- decisions


@pytest.fixture
def vast(three_nodes: EmbeddedCloud) -> Iterator[Any]:
    """A flavor that no host has room for."""
    compute = three_nodes.connection("micronova-admin").compute
    made = compute.create_flavor(name="vast-2", vcpus=1, ram=128, disk=1_000_000)
    yield made
    compute.delete_flavor(made)


def test_a_decision_with_its_numbers(
    cleared: None, vast: Any, member: Browser, reader: Browser, admin: Browser
) -> None:
    demo = member.cloud.connection()
    image = demo.image.find_image("cirros").id
    sizes = {"large": vast.id, "small": demo.compute.find_flavor("m1.nano").id}
    made = {
        name: demo.compute.create_server(
            name=name, image_id=image, flavor_id=flavor, networks="none"
        )
        for name, flavor in sizes.items()
    }
    demo.compute.wait_for_server(made["small"], wait=60)
    eventually(lambda: demo.compute.get_server(made["large"].id).status == "ERROR")

    text = admin.get("/explain/decisions", params={"what": made["large"].id}).text
    assert "No host 3 hosts considered" in text
    assert "GiB disk free, 1000000 asked – not asked" in text
    smaller = r"pve\d, if the disk were [\d,]+ GiB instead of 1,000,000 GiB"
    assert re.search(f"What would have worked {smaller}", text)
    assert "Refused by: resources (3)" in text
    text = admin.get("/explain/decisions", params={"what": made["small"].id}).text
    assert re.search(r"pve\d ★ chosen ✓ passed [+-]\d\.\d{3}", text)
    assert "total" in text
    for browser in (member, reader):
        text = browser.get("/explain/decisions", params={"what": made["large"].id}).text
        assert "Refused by: resources" in text
        assert "pve" not in text
    links = member.get(f"/servers/{made['large'].id}").links
    [request] = [one for one in links if "/explain/decisions?what=req-" in one]
    assert "Refused by: resources" in member.get(request.removeprefix("/dashboard")).text
    assert "Nothing is known under" in member.get(f"/explain/decisions?what={UUID}").text

    links = admin.get("/explain/decisions", params={"what": made["large"].id}).links
    [like] = [one for one in links if "like=" in one]
    assert "Host:" not in admin.get(like.removeprefix("/dashboard")).text
    fields = admin.form("/explain/what-if").fields
    assert (fields["flavor"], fields["image"]) == (vast.id, image)
    asked = {"flavor": vast.id, "image": image, "network": "none"}
    text = admin.get("/explain/what-if", params=asked).text
    assert "No host 3 hosts considered" in text
    assert "0 more servers of this flavor would fit" in text
    asked |= {"flavor": sizes["small"], "without": "pve1, pve2", "count": "2"}
    text = admin.get("/explain/what-if", params=asked).text
    assert text.count("Host: pve3 1 host considered") == 2
    assert "Server 2 of 2" in text
    asked |= {"without": "", "count": "1", "hints": f"same_host={made['small'].id}"}
    assert "same host (2)" in admin.get("/explain/what-if", params=asked).text
    asked |= {"hints": "", "host": "nowhere"}
    assert "Compute host nowhere could not be found." in (
        admin.get("/explain/what-if", params=asked).text
    )
    assert len(list(demo.compute.servers())) == 2


# --- audit


def test_an_audit_shows_what_is_not_ours(three_nodes: EmbeddedCloud, admin: Browser) -> None:
    pve = Proxmox(three_nodes)
    pve.make_vm(150_777, "pve1", name="by-hand", tags="micronova")
    try:
        admin.get("/audit")
        assert (
            "Under way: The clusters and the record are being compared."
            in admin.submit("/audit").text
        )
        text = audited(admin).text
        assert "VM foreign 1 ○ notice" in text
        assert "1 difference left" in text
        [path] = [
            one.removeprefix("/dashboard")
            for one in admin.parsed.links
            if re.search(r"/audit/\d+$", one)
        ]
        assert "sim1/150777" not in admin.get("/audit?show=orphans").text
        text = admin.get(path).text
        assert "It is not proven ours" in text
        assert "name by-hand" in text
        assert f"/dashboard{path}/heal" not in admin.parsed.links
        admin.get(f"{path}/heal")
        assert not admin.has_form(f"{path}/heal")
        text = admin.post(f"{path}/heal", {"csrf": admin.csrf, "force": "true"}).text
        assert "Refused: " in text
        assert pve.vm(150_777) is not None
    finally:
        pve.call("DELETE", "nodes/pve1/qemu/150777")
    admin.get("/audit")
    admin.submit("/audit")
    assert "everything agrees" in audited(admin).text
    assert "sim1/150777" in admin.get("/audit?show=healed").text


def audited(admin: Browser) -> Parsed:
    """Follow an audit to its end."""
    return admin.until("/audit", lambda _: "hx-get" not in admin.page.text)
