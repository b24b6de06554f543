"""Commands and addresses that pages show: whatever is in a value, it is one value."""

from __future__ import annotations

import shlex
import subprocess
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from dashboard import security, shell
from dashboard.pages.create import request, spelled
from dashboard.pages.server import overview
from dashboard.render import environment
from tests.fixtures.nasty import IN_PATHS, IN_SHELLS, OPTIONS

EMPTY: dict[str, Any] = dict.fromkeys(request.ONE, "") | {name: [] for name in request.SEVERAL}
GIVEN = EMPTY | {"image": "i", "source": "image", "count": "1", "flavor": "f"}
NAMES = (*IN_SHELLS, *OPTIONS)


def words_of(command: str) -> list[str]:
    """Return the words that a shell makes of a command, which it doesn't carry out."""
    printed = ["sh", "-c", f"set -f; words() {{ printf '%s\\0' \"$@\"; }}; words {command}"]
    return subprocess.run(printed, check=True, capture_output=True, text=True).stdout.split("\0")[
        :-1
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_user_of_an_image_is_no_command(name: str) -> None:
    command = overview.ssh([("lan", "192.0.2.1")], {"os_admin_user": name})
    client, *options, where = words_of(command)
    assert (client, where) == ("ssh", f"{name}@192.0.2.1")
    assert options == (["--"] if name.startswith("-") else [])


@pytest.mark.parametrize("name", NAMES)
def test_a_server_and_all_it_names(name: str) -> None:
    fields = {"name": name, "metadata": f"note={name}", "zone": name, "groups": [name]}
    body = request.body(GIVEN | fields)
    words = words_of(spelled.command(body, name).replace("openstack ", "", 1))
    assert words[-1] == name
    assert (words[-2] == "--") == name.startswith("-")
    before = words[: -2 if name.startswith("-") else -1]
    for option in ("flavor", "security-group"):
        joined = f"--{option}={name}"
        assert joined in before or name == before[before.index(f"--{option}") + 1]
        assert (joined in before) == name.startswith("-")


@pytest.mark.parametrize("name", OPTIONS)
def test_a_key_pair(name: str) -> None:
    form = GIVEN | {"name": "web", "key_how": "make", "key_name": name}
    text = spelled.command(request.body(form), "small", request.new_key(form))
    assert text.partition("\n")[0].endswith(f"--private-key private-key -- {name})")
    assert f"--key-name={name}" in text
    assert shlex.split(shell.file(f"{name}.pem")) == [f"./{name}.pem"]


@pytest.mark.parametrize("name", IN_PATHS)
def test_a_value_in_a_link_is_one_value(name: str) -> None:
    page = '<a href="/nodes/{{ name|urlencode }}/drain?host={{ name|urlencode }}">'
    shown = environment(lambda file: file).from_string(page).render(name=name)
    sent = urlsplit(shown.removeprefix('<a href="').removesuffix('">'))
    assert [unquote(part) for part in sent.path.split("/")] == ["", "nodes", name, "drain"]
    assert parse_qs(sent.query) == {"host": [name]}
    assert not sent.fragment


@pytest.mark.parametrize(
    "text",
    [
        *("//evil", "///evil", "/\\evil", "https:evil", "https://evil/dashboard/", "\\\\evil"),
        *("/dashboard//evil", "/dashboard/\\evil", "/dashboard/\r\nX: y", "/dashboard/\tx"),
        *("/dashboard/../evil", "/dashboard/%2e%2e/evil", "/dashboard/.%2E/evil", "/dashboardx/"),
        *("/dashboard/..", "/dashboard/..?x=y", "javascript:alert(1)", " /dashboard/", ""),
        *("/dashboard/servers/..;/x/../../evil", "/dashboard/\x7f", "/dashboard/\u2028"),
    ],
)
def test_a_redirect_leads_nowhere_else(text: str) -> None:
    assert security.local_path(text, "/dashboard") == "/dashboard/"


@pytest.mark.parametrize(
    "text", ["/", "/servers?q=a..b&next=//x", "/nodes/pve1..2", "/explain?what=..", "/a/.../b"]
)
def test_a_redirect_leads_to_own_pages(text: str) -> None:
    assert security.local_path(f"/dashboard{text}", "/dashboard") == f"/dashboard{text}"
