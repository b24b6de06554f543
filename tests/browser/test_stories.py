"""What people do with the dashboard, in a real browser."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium")

from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from tests.browser.chromium import PHONE, Window
from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.browser import PEOPLE, SESSION_COOKIE, Browser, kept
from tests.functional.dashboard.conftest import LogIn
from tests.functional.dashboard.test_images import QCOW2

#: a page that was loaded again has lost it
MARK = "window.stillHere = true"
FOLLOWED = "return window.stillHere === true"


@contextlib.contextmanager
def fault(cloud: EmbeddedCloud, **what: Any) -> Iterator[None]:
    """Have something go wrong in the simulated cluster."""
    cloud.control("POST", "faults", **what)
    try:
        yield
    finally:
        cloud.control("DELETE", "faults")


_PREVIEWS = (
    "return (window.previews ??= "
    "(document.addEventListener('htmx:afterSettle', () => window.previews++), 0))"
)


@contextlib.contextmanager
def previewed(window: Window) -> Iterator[None]:
    """Wait until the form for a server has shown what a change means."""
    before = window.run(_PREVIEWS)
    yield
    window.until(lambda: window.run(_PREVIEWS) > before)


def fill_in(window: Window, name: str, flavor: str = "m1.nano") -> None:
    """Fill in the form for a new server, and send it."""
    # a newer preview replaces the one under way, which htmx logs
    window.expected |= {"htmx:afterRequest", "htmx:sendAbort"}
    window.open("/servers/create")
    with previewed(window):
        window.find("#name").send_keys(name)
    with previewed(window):
        Select(window.find("#image")).select_by_visible_text("cirros")
    card = window.find(f"#flavors [data-text='{flavor}']")
    if not card.is_selected():
        with previewed(window):
            card.click()
    window.find("main form button.primary").click()
    window.until(lambda: window.has("#live"))


def a_server(cloud: EmbeddedCloud, name: str) -> Any:
    """Create a server, and wait for it."""
    connection = cloud.connection()
    made = connection.compute.create_server(
        name=name,
        image_id=connection.image.find_image("cirros").id,
        flavor_id=connection.compute.find_flavor("m1.nano").id,
        networks="auto",
    )
    return connection.compute.wait_for_server(made, wait=60)


# --- log in


def test_log_in_by_keyboard_and_out(window: Window) -> None:
    given = window.cloud.config(PEOPLE["member"]).auth
    window.open("/networks")
    assert window.path == "/login"
    window.find("#user").send_keys(given["username"], Keys.TAB)
    window.press("wrong", Keys.ENTER)
    window.expected.add("status of 401")
    window.until_text("User name, password or domain is wrong.")
    assert window.find("#user").get_attribute("value") == given["username"]
    window.find("#password").send_keys(given["password"], Keys.ENTER)
    window.until(lambda: window.path == "/networks")
    assert "vmbr0" in window.text
    assert window.run("return document.cookie") == ""
    stored = window.run("return Object.keys({...localStorage, ...sessionStorage})")
    assert stored in ([], ["htmx-current-path-for-history"]), "more is stored than this tab's path"
    window.find(".account summary").click()
    window.find("form[action$='/logout'] button").click()
    window.until(lambda: window.path == "/login")
    window.open("/networks")
    assert window.path == "/login"


# --- creates


def test_a_create_shows_its_waterfall_while_it_builds(
    cleared: None, window: Window, people: LogIn
) -> None:
    window.take(people("member"))
    held = {"action": "hold", "method": "POST", "path": r"/status/start$"}
    with fault(window.cloud, **held):
        fill_in(window, "live")
        window.run(MARK)
        assert "live is being created." in window.text
        window.until_text("create VM", "start VM")
        assert "start VM" in window.find(".steps tr.busy").text
        assert window.has("#live[hx-get]")
    window.until_text("ACTIVE")
    window.until(lambda: not window.has("#live[hx-get]"))
    assert not window.has(".steps tr.busy")
    assert "start VM" in window.find(".steps").text
    assert window.run(FOLLOWED)
    # the list follows by itself, too
    with fault(window.cloud, **held):
        fill_in(window, "listed")
        window.open("/servers")
        window.run(MARK)
        assert "BUILD" in window.find("tbody .chip.busy").text
    window.until(lambda: not window.has("tbody .chip.busy"))
    assert "ACTIVE" in window.find("tbody").text
    assert window.run(FOLLOWED)


@pytest.fixture
def vast(three_nodes: EmbeddedCloud) -> Iterator[str]:
    """A flavor that no host has room for."""
    compute = three_nodes.connection("micronova-admin").compute
    made = compute.create_flavor(name="vast", vcpus=1, ram=128, disk=1_000_000)
    yield "vast"
    compute.delete_flavor(made)


def test_a_create_without_a_host_says_what_would_do(
    cleared: None, vast: str, window: Window, people: LogIn
) -> None:
    window.take(people("member"))
    fill_in(window, "too-large", vast)
    window.run(MARK)
    window.until_text("ERROR", "No valid host was found", "no host", "m1.medium would fit.")
    assert window.run(FOLLOWED)
    request = window.find(".operation a[href*='explain']")
    request.click()
    window.until(lambda: window.path == "/explain")
    window.until_text("No valid host was found", "m1.medium would fit.")


def test_a_failure_of_proxmox_shows_its_sentence(
    cleared: None, window: Window, people: LogIn
) -> None:
    window.take(people("member"))
    with fault(
        window.cloud,
        action="task-fail",
        method="POST",
        path=r"/nodes/[^/]+/qemu(/\d+/clone)?$",
        text="lvcreate 'vm-100-disk-0' error: Run `lvcreate --help'",
        times=0,
    ):
        fill_in(window, "unlucky")
        window.until_text("ERROR", "The host could not build the server.", "creation failed")
    assert "lvcreate" not in window.text
    path = window.path
    window.take(people("admin"))
    window.open(path)
    window.until_text("lvcreate", "UPID:")


def test_a_lock_that_only_root_can_clear_shows_the_remedy(
    cleared: None, window: Window, people: LogIn
) -> None:
    server = a_server(window.cloud, "locked")
    [cluster] = window.cloud.control("GET", "state")["clusters"]
    [vm] = [one for one in cluster["vms"] if server.id in str(one)]
    window.take(people("admin"))
    with fault(window.cloud, action="config-lock", vmid=vm["vmid"], lock="backup"):
        window.open(f"/servers/{server.id}/reset")
        window.find("main form button").click()
        window.until_text("do this:", f"qm unlock {vm['vmid']}")


# --- charts


def test_usage_is_drawn_in_the_colours_of_the_theme(window: Window, people: LogIn) -> None:
    window.take(people("member"))
    window.open("/usage")
    assert window.run("return document.querySelectorAll('.chart svg.curve').length") == 3
    light = stroke(window)
    window.run("document.documentElement.dataset.theme = 'dark'")
    assert stroke(window) != light
    assert "in use at most" in window.run(
        "return document.querySelector('.chart .bands title').textContent"
    )


def stroke(window: Window) -> str:
    """Return the colour of the first chart's line."""
    line = "document.querySelector('.chart .line0 path')"
    return str(window.run(f"return getComputedStyle({line}).stroke"))


# --- a drain


def test_a_drain_is_followed_to_its_end_and_undone(
    cleared: None, window: Window, people: LogIn
) -> None:
    server = a_server(window.cloud, "moving")
    admin = window.cloud.connection("micronova-admin").compute
    host = admin.get_server(server.id).compute_host
    window.take(people("admin"))
    with fault(window.cloud, action="migration-slow", seconds=600):
        window.open(f"/nodes/{host}")
        window.find(f"a[href$='/nodes/{host}/drain']").click()
        window.until_text("Drain", "moving")
        window.find("main form button.danger, main form button.primary").click()
        window.until(lambda: window.has("#live[hx-get]"))
        window.run(MARK)
        window.until(lambda: window.has("tbody .chip.busy"))
        assert "/migrations/bulk/" in window.path
    window.until_text("1 moved, none remain.")
    assert not window.has("#live[hx-get]")
    assert window.run(FOLLOWED)
    assert admin.get_server(server.id).compute_host != host
    window.open(f"/nodes/{host}")
    window.find("form[action$='/enable'] button").click()
    window.until_text("The host gets new servers again.")


# --- who may what


def test_a_reader_sees_no_buttons(cleared: None, window: Window, people: LogIn) -> None:
    server = a_server(window.cloud, "seen")
    window.take(people("reader"))
    for path in ("/", "/servers", f"/servers/{server.id}", "/volumes", "/images", "/networks"):
        window.open(path)
        assert not window.has("main form[method='post']"), path
        assert not window.has("main .danger"), path
        assert not window.has("main a[href*='/create'], main a[href$='/delete']"), path
    window.expected.add("status of 403")
    window.open("/servers/create")
    assert "Your role doesn't allow this." in window.text


# --- sessions


@pytest.fixture
def guest(three_nodes: EmbeddedCloud) -> Browser:
    """A session of its own, to be ended."""
    made = Browser(three_nodes)
    made.log_in("member")
    return made


def test_a_form_of_an_ended_session_is_not_sent(window: Window, guest: Browser) -> None:
    window.take(guest)
    window.open("/volumes/create")
    window.find("main input[name='name']").send_keys("late")
    kept(window.cloud).end(guest.name)
    window.find("main form button.primary").click()
    window.until(lambda: window.path == "/login")
    given = window.cloud.config(PEOPLE["member"]).auth
    window.find("#user").send_keys(given["username"])
    window.find("#password").send_keys(given["password"], Keys.ENTER)
    window.until(lambda: window.path == "/")
    window.open("/volumes")
    assert "No volumes." in window.text
    assert list(window.cloud.connection().block_storage.volumes()) == []


@pytest.mark.long
def test_what_follows_by_itself_goes_to_the_login(
    cleared: None, window: Window, guest: Browser
) -> None:
    window.take(guest)
    window.expected.add("status of 401")
    window.expected.add("Response Status Error Code 401")
    with fault(window.cloud, action="hold", method="POST", path=r"/status/start$"):
        fill_in(window, "watched")
        assert window.has("#live[hx-get]")
        kept(window.cloud).end(guest.name)
        window.until(lambda: window.path == "/login")


# --- other sites


@contextlib.contextmanager
def another_site(page: str) -> Iterator[str]:
    """Serve one page on this host, at another port: the browser sends it the cookies, too."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_another_site_changes_nothing(window: Window, people: LogIn) -> None:
    member = people("member")
    window.take(member)
    window.expected |= {"status of 403", "favicon"}
    # it even knows the token
    page = (
        f"<form method=post action='{window.base}/volumes'><input name=size value=1>"
        f"<input name=csrf value='{member.csrf}'><button>Win</button></form>"
    )
    with another_site(page) as url:
        window.driver.get(url)
        window.find("button").click()
        window.until_text("another site has sent it")
    assert list(window.cloud.connection().block_storage.volumes()) == []
    window.open("/")
    assert window.path == "/"


@pytest.mark.long
def test_another_site_shows_no_page_inside(window: Window, people: LogIn) -> None:
    window.take(people("member"))
    window.expected |= {"frame-ancestors", "favicon", "Framing"}
    with another_site(f"<iframe src='{window.base}/'></iframe>") as url:
        window.driver.get(url)
        frame = window.find("iframe")
        window.driver.switch_to.frame(frame)
        shown = window.run("return document.body ? document.body.innerText : ''")
        window.driver.switch_to.default_content()
    assert "Overview" not in shown


def test_nothing_inline_and_nothing_from_elsewhere_runs(window: Window, people: LogIn) -> None:
    window.take(people("member"))
    window.open("/servers")
    window.run(
        "const add = (tag, facts) => document.body.append("
        "Object.assign(document.createElement(tag), facts));"
        "add('script', {textContent: 'window.ran = 1'});"
        "add('script', {src: 'http://127.0.0.1:9/evil.js'});"
        "add('img', {src: 'http://127.0.0.1:9/x.png'});"
        "add('p', {innerHTML: '<b style=\"color: red\" onclick=\"window.ran = 2\">x</b>'});"
        "document.querySelector('p > b').click()"
    )
    said: list[str] = []
    window.until(lambda: said.extend(window.complaints()) or len(said) >= 5)
    assert window.run("return window.ran") is None
    assert all("Content Security Policy" in one for one in said), said
    assert {part for part in ("script-src", "img-src", "style-src") if part in str(said)} == {
        *("script-src", "img-src", "style-src")
    }


# --- the keyboard, and how it looks


@pytest.mark.parametrize(
    "path",
    [
        "/servers",
        *(pytest.param(one, marks=pytest.mark.long) for one in ("/", "/images/create", "/quotas")),
        *(pytest.param(one, marks=pytest.mark.long) for one in ("/nodes", "/services")),
        pytest.param("/servers/create", marks=pytest.mark.long),
        pytest.param("/networks", marks=pytest.mark.long),
        pytest.param("/security-groups", marks=pytest.mark.long),
    ],
)
def test_the_keyboard_reaches_everything(window: Window, people: LogIn, path: str) -> None:
    window.take(people("admin"))
    window.open(path)
    assert window.tab()
    assert window.run("return document.activeElement.className") == "skip"
    for _ in range(200):
        if not window.tab():
            break
    unreached = window.run(
        "return [...document.querySelectorAll("
        "'a[href], button, input, select, textarea, summary')]"
        ".filter((one) => one.type !== 'hidden' && !one.disabled && one.checkVisibility()"
        " && one.tabIndex >= 0"
        # the arrow keys lead to the others of a group
        " && (one.type !== 'radio' || one.checked)"
        " && !one.dataset.reached).map((one) => one.outerHTML)"
    )
    assert unreached == []
    unseen = window.run(
        "return [...document.querySelectorAll('[data-unseen]')].map((one) => one.outerHTML)"
    )
    assert unseen == []


@pytest.mark.long
def test_the_skip_link_and_the_menu_by_keyboard(window: Window, people: LogIn) -> None:
    window.take(people("member"))
    window.open("/servers")
    window.tab()
    window.press(Keys.ENTER)
    assert window.run("return document.activeElement.id") == "main"
    window.find(".account summary").send_keys(Keys.ENTER)
    assert window.run("return document.querySelector('.account').open") is True
    window.find("button[name='theme'][value='dark']").send_keys(Keys.ENTER)
    window.until(lambda: window.has("html[data-theme='dark']"))
    assert window.path == "/servers"


@pytest.mark.long
def test_an_administrators_pages_are_in_a_menu_of_a_phone(window: Window, people: LogIn) -> None:
    window.take(people("admin"))
    window.resize(PHONE)
    window.open("/servers")
    is_open = "return document.querySelector('.folded details').open"
    lines = "return document.querySelector('header nav').offsetHeight"
    assert window.run(lines) < 70, "two lines"
    for close in (
        lambda: window.press(Keys.ESCAPE),
        lambda: window.find(".everything input").click(),
    ):
        window.find(".folded summary").send_keys(Keys.ENTER)
        assert window.run(is_open) is True
        close()
        assert window.run(is_open) is False
    window.find(".folded summary").click()
    window.find(".folded a[href$='/services']").click()
    window.until(lambda: window.path == "/services")
    assert "Services" in window.find(".folded summary").text
    assert window.run(lines) < 70


@pytest.mark.long
def test_the_colours_are_those_of_the_system_until_one_chooses(
    window: Window, people: LogIn
) -> None:
    window.take(people("member"))
    window.open("/networks")
    script = "return getComputedStyle(document.body).backgroundColor"
    light = window.run(script)
    window.scheme("dark")
    dark = window.run(script)
    assert light != dark
    window.find(".account summary").click()
    window.find("button[name='theme'][value='light']").click()
    window.until(lambda: window.has("html[data-theme='light']"))
    assert window.run(script) == light


def test_a_phone_has_room_for_the_page(window: Window, people: LogIn) -> None:
    window.take(people("admin"))
    window.resize(PHONE)
    window.open("/servers")
    height = window.run("return document.querySelector('header').offsetHeight")
    assert height < PHONE[1] / 7


# --- a file


def test_a_file_is_sent_as_an_image(
    cleared: None, window: Window, people: LogIn, tmp_path: Path
) -> None:
    file = tmp_path / "small.qcow2"
    file.write_bytes(QCOW2)
    window.take(people("member"))
    window.open("/images/create")
    window.find("#name").send_keys("from a file")
    window.find("main form button.primary").click()
    window.find("form[action$='/data'] #file").send_keys(str(file))
    window.find("form[data-then] button").click()
    window.until_text("The data are being imported.")
    window.until_text("active")
    assert window.path.startswith("/images/")


@pytest.mark.long
def test_a_file_that_is_no_image_is_refused_in_words(
    cleared: None, window: Window, people: LogIn, tmp_path: Path
) -> None:
    file = tmp_path / "odd.qcow2"
    file.write_bytes(b"no image")
    window.take(people("member"))
    window.open("/images/create")
    window.find("#name").send_keys("odd")
    window.find("main form button.primary").click()
    window.find("form[action$='/data'] #file").send_keys(str(file))
    window.find("form[data-then] button").click()
    window.until_text("Refused:")
    assert SESSION_COOKIE not in window.driver.current_url
