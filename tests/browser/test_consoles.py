"""A server's screen and its serial line, in a real browser."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("selenium")

from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from tests.browser.chromium import PHONE, Window
from tests.browser.conftest import LOOKS
from tests.browser.test_daily import looks_right, press
from tests.browser.test_pages import PICTURES
from tests.browser.test_stories import a_server
from tests.functional.cloud import EmbeddedCloud
from tests.functional.conftest import OPTIONS
from tests.functional.dashboard.conftest import LogIn

#: the bars of the simulated screen
BARS = {(255, 255, 0), (0, 255, 255), (0, 255, 0), (255, 0, 255), (255, 0, 0)}


@pytest.fixture
def real_time(three_nodes: EmbeddedCloud) -> Iterator[None]:
    """Proxmox VE gives ten seconds to open a console: those of a clock on the wall."""
    yield
    three_nodes.control("POST", "clock", speed=OPTIONS["speed"])


@pytest.fixture
def member(cleared: None, real_time: None, window: Window, people: LogIn) -> Iterator[Window]:
    """A member's window, on the consoles of a server."""
    server = a_server(window.cloud, "visited")
    window.cloud.control("POST", "clock", speed=1)
    window.expected.add("Canvas2D")
    window.take(people("member"))
    window.open(f"/servers/{server.id}/console")
    yield window
    window.driver.switch_to.default_content()


@contextlib.contextmanager
def console(window: Window, name: str) -> Iterator[None]:
    """Open one, and go on in its frame."""
    source = "return document.querySelector('iframe.console')?.src ?? ''"
    before = window.run(source)
    press(window, name)
    window.until(lambda: window.run(source) not in ("", before))
    window.driver.switch_to.frame(window.find("iframe.console"))
    try:
        yield
    finally:
        window.driver.switch_to.default_content()


# --- the screen


@pytest.mark.parametrize("look", LOOKS)
def test_the_screen_is_shown_and_gets_keys(look: str, member: Window) -> None:
    dress(member, look)
    with console(member, "Open the screen"):
        member.until(lambda: seen(member) >= BARS)
        before = edge(member)
        member.find("#ctrl-alt-del").click()
        member.until(lambda: edge(member) != before)
        before = edge(member)
        paste(member, "aB!")
        member.until(lambda: edge(member) != before)
        assert member.run("return document.getElementById('text').value") == ""
        member.find("#full").click()
        member.until(lambda: member.run("return document.fullscreenElement !== null"))
        member.find("#full").click()
        member.until(lambda: member.run("return document.fullscreenElement === null"))


#: records the places of the keys that noVNC sends to QEMU
_RECORD = """
const done = arguments[arguments.length - 1];
import('./novnc/core/rfb.js').then(({default: RFB}) => {
  window.strokes = [];
  const send = RFB.messages.QEMUExtendedKeyEvent;
  RFB.messages.QEMUExtendedKeyEvent = (sock, keysym, down, code) => {
    window.strokes.push(down ? code : -code);
    send(sock, keysym, down, code);
  };
  done();
});
"""
#: scan codes of a PC's keyboard: left Shift, AltGr, the space bar, and keys by their US letters
_SHIFT, _ALTGR, _SPACE, _Q, _Y, _Z, _MINUS, _BACKQUOTE = (
    0x2A,
    0xE038,
    0x39,
    0x10,
    0x15,
    0x2C,
    12,
    41,
)


def strokes(*keys: int) -> list[int]:
    """Return what is sent for keys that are pressed one after the other."""
    return [event for key in keys for event in (key, -key)]


def held(modifier: int, key: int) -> list[int]:
    """Return what is sent for a key with another one held."""
    return [modifier, key, -key, -modifier]


def sent(window: Window, count: int) -> list[int]:
    """Return what was sent once it is so much, and forget it."""
    window.until(lambda: len(window.run("return window.strokes")) >= count)
    return list(window.run("return window.strokes.splice(0)"))


@pytest.mark.parametrize("look", LOOKS)
def test_keys_of_another_country(look: str, member: Window) -> None:
    dress(member, look)
    with console(member, "Open the screen"):
        member.until(lambda: seen(member) >= BARS)
        member.driver.execute_async_script(_RECORD)
        Select(member.find("#layout")).select_by_visible_text("same as mine")
        paste(member, "zZ")
        assert sent(member, 6) == [*strokes(_Z), *held(_SHIFT, _Z)]
        Select(member.find("#layout")).select_by_visible_text("German")
        paste(member, "z@ß^")
        german = [*strokes(_Y), *held(_ALTGR, _Q), *strokes(_MINUS, _BACKQUOTE, _SPACE)]
        assert sent(member, len(german)) == german
        paste(member, "ж")
        member.until_text("the guest's keyboard has no ж")
        # what is typed here is pressed by its letter, too
        member.driver.switch_to.active_element.send_keys("y")
        assert sent(member, 2) == strokes(_Z)
        looks_right(member)
        member.find("#paste").click()
        member.until_text("as on a keyboard: German")
        member.driver.switch_to.default_content()
        member.picture(PICTURES / f"console-keyboard-{look}.png")
    with console(member, "Open it again"):
        member.until_text("connected")
        assert Select(member.find("#layout")).first_selected_option.text == "German"


def dress(window: Window, look: str) -> None:
    """Have the colours and the size of a look."""
    window.scheme("dark" if look == "dark" else "light")
    if look == "phone":
        window.resize(PHONE)


def paste(window: Window, text: str) -> None:
    """Paste a text by the console's dialog."""
    window.find("#paste").click()
    window.find("#text").send_keys(text)
    window.find("#type").click()


def edge(window: Window) -> Any:
    """Return the colour of the first bar, which each key shifts."""
    return window.run(
        "const one = document.querySelector('canvas');"
        "return [...one.getContext('2d').getImageData(1, one.height / 2, 1, 1).data].join()"
    )


def seen(window: Window) -> set[tuple[int, ...]]:
    """Return some colours of the canvas in this frame."""
    found = window.run(
        "const one = document.querySelector('canvas'); if (!one || !one.width) return [];"
        "const line = one.getContext('2d').getImageData(0, one.height / 2, one.width, 1).data;"
        "const all = []; for (let at = 0; at < line.length; at += 16)"
        " all.push([line[at], line[at + 1], line[at + 2]]); return all"
    )
    return {tuple(one) for one in found}


# --- the serial line


@pytest.mark.parametrize("look", LOOKS)
def test_type_into_the_serial_line(look: str, member: Window) -> None:
    dress(member, look)
    looks_right(member)
    member.picture(PICTURES / f"console-{look}.png")
    with console(member, "Open the serial line"):
        member.until_text("Linux version", "visited login:")
        keys = member.find("#keys")
        assert member.run("return document.activeElement.id") == "keys"
        keys.send_keys("root", Keys.ENTER, "secret")
        member.until(lambda: rows(member)[-2:] == ["visited login: root", "secret"])
        # the simulated guest echoes: a sequence is one to the terminal, too
        keys.send_keys(Keys.ARROW_LEFT * 3, "X")
        member.until(lambda: rows(member)[-1] == "secXet")
        paste(member, "\nhello üñ 日本")
        member.until(lambda: rows(member)[-1] == "hello üñ 日本")
        if look == "phone":
            member.find("#ctrl").click()
            keys.send_keys("c")
            assert member.find("#ctrl").get_attribute("aria-pressed") == "false"
        # readers get what is new, and can leave
        said = "return document.getElementById('said').textContent"
        member.until(lambda: "hello" in member.run(said))
        member.press(Keys.SHIFT + Keys.TAB)
        assert member.run("return document.activeElement.id") != "keys"
        looks_right(member)
        assert member.run("return location.hash + location.search") == ""
        member.driver.switch_to.default_content()
        member.picture(PICTURES / f"console-serial-{look}.png")
    member.open(member.path)
    member.until_text("Open the serial line")


def rows(window: Window) -> list[str]:
    """Return the lines of the terminal, without empty ones at the end."""
    script = "return [...document.querySelectorAll('#rows div')].map((one) => one.textContent)"
    found = [str(one).rstrip(" \u200b") for one in window.run(script)]
    while found and not found[-1]:
        found.pop()
    return found


#: what a terminal is sent → its rows, without blanks at their ends
_SHOWN = {
    "hello\r\nworld": "hello|world",
    "0123456789AB": "0123456789|AB",
    "a\r\nb\r\nc\r\nd\r\ne": "b|c|d|e",
    "abc\x1b[2D*": "a*c",
    "abc\x1b[2J\x1b[HX": "X",
    "abc\r\x1b[K": "",
    "a\r\nb\r\nc\x1b[2;3r\x1b[3;1H\n\nZ": "a||Z",
    "\x1b(0lqk\x1b(Bx": "┌─┐x",
    "abc\x1b[1G\x1b[2P": "c",
    "abc\x1b[1G\x1b[2@": "  abc",
    "main\x1b[?1049h\x1b[Halt\x1b[?1049l": "main",
    "main\x1b[?1049h\x1b[Halt": "alt",
    "日本\bX": "日 X",
    "e\u0301x": "e\u0301x",
    "\x1b]0;title\x07t\x1bP1;2q\x1b\\u": "tu",
    "x\x1b[3b": "xxxx",
    "a\r\nb\r\nc\x1b[2;1H\x1b[L": "a||b|c",
    "a\r\nb\r\nc\x1b[1;1H\x1b[M": "b|c",
    "a\x1b[?9999h\x1b[31;1mb\x1b[>4;2mc\x1b[38;5;9md": "abcd",
    "top\x1b[4;1Hend\x1bM\x1bM\x1bM\x1bM": "|top",
    "a\tb": "a       b",
}
_FEED = """
const [texts, done] = [arguments[0], arguments[1]];
Promise.all(['parser', 'screen', 'grid'].map((one) => import(`./terminal/${one}.js`))).then(
  ([{Parser}, {Screen}, {textOf}]) => done(texts.map((text) => {
    const replies = [];
    const screen = new Screen(10, 4, {reply: (one) => replies.push(one)});
    new Parser(screen).feed(text);
    return [screen.lines.map(textOf).join('|').replace(/\\|+$/, ''), replies.join('')];
  })), (error) => done(String(error)));
"""


def test_what_a_terminal_is_sent(member: Window) -> None:
    with console(member, "Open the serial line"):
        page = member.run("return location.href")
    member.open(page)
    member.until_text("this address has no token")
    found = member.driver.execute_async_script(_FEED, list(_SHOWN))
    assert dict(zip(_SHOWN, (shown for shown, _ in found), strict=True)) == _SHOWN
    asked = ["\x1b[2;3H\x1b[6n", "\x1b[5n", "\x1b[c", "\x1b[18t"]
    replies = [reply for _, reply in member.driver.execute_async_script(_FEED, asked)]
    assert replies == ["\x1b[2;3R", "\x1b[0n", "\x1b[?1;2c", "\x1b[8;4;10t"]
