"""An unmodified Horizon beside a cloud, and a person who uses it over HTTP.

The person opens pages and sends their forms, and the requests that the scripts of the pages send.
"""

from __future__ import annotations

import contextlib
import html
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import requests

from tests.fixtures import dashboards
from tests.functional import backends
from tests.functional.cloud import EmbeddedCloud, eventually
from tests.pages import block, placed, without

#: the program `python` of the environment that has Horizon
PYTHON = Path(os.environ.get("MICRONOVA_TEST_HORIZON") or "/nonexistent")
_START_SECONDS = 240
#: what the tests read of Horizon's own troubles
_LOGGING = """
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
}
"""
_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
#: said in every page
_NO_SCRIPTS = "This application requires JavaScript"
_ACTION = re.compile(r'<form[^>]*action="([^"]*)"')
_ALERT = re.compile(
    r'<div class="alert [^"]*alert-(?:danger|warning)[^"]*">(.*?)</div>', re.DOTALL
)
_ERROR = re.compile(r'<span class="help-block alert[^"]*">(.*?)</span>', re.DOTALL)
_COUNTED = re.compile(r'^micronova_http_requests_total\{(.*status="[45]\d\d".*)\} (\S+)$', re.M)


@contextlib.contextmanager
def running_horizon(cloud: EmbeddedCloud, folder: Path) -> Iterator[str]:
    """Run Horizon until the block ends; gives its address."""
    port = backends.free_port()
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONWARNINGS": "ignore"}
    places = {
        "/opt/horizon/bin": str(PYTHON.parent),
        "/etc/horizon": str(folder / "etc"),
        "/var/lib/horizon": str(folder),
        "http://127.0.0.1:8775/v3": cloud.auth_url,
        "127.0.0.1:8080": f"127.0.0.1:{port}",
        "horizon.example.org": "127.0.0.1",
    }
    settings = folder / "etc" / "local" / "local_settings.py"
    run_install(block(*dashboards.HORIZON_INSTALL), places)
    settings.write_text(placed(block(*dashboards.HORIZON_SETTINGS), places) + _LOGGING)
    start = placed(block(*dashboards.HORIZON_START), places)
    url = f"http://127.0.0.1:{port}"
    with (folder / "horizon.log").open("w") as log:
        # the last command, the server, takes the place of the shell
        head, _, server = start.rstrip().rpartition("\n")
        process = subprocess.Popen(
            ["bash", "-ec", f"{head}\nexec {server}"],
            env=environment,
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            eventually(lambda: _answers(f"{url}/auth/login/"), _START_SECONDS)
            yield url
        finally:
            process.terminate()
            process.wait(30)


def run_install(text: str, places: Mapping[str, str]) -> None:
    """Run the commands of a block but those that `tox` runs."""
    text = placed(without(text, dashboards.COMMANDS_NOT_RUN), places)
    subprocess.run(["bash", "-ec", text], check=True)


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=30).ok
    except requests.ConnectionError:
        return False


class Person:
    """Somebody logged in."""

    def __init__(self, url: str, cloud: EmbeddedCloud, who: str) -> None:
        self.url, self._http = url, requests.Session()
        self._http.trust_env = False
        given = cloud.config(who).auth
        sent = {"username": given["username"], "password": given["password"]}
        sent |= {"region": "default", "next": "/project/"}
        answer = self._post("/auth/login/", self.token("/auth/login/"), sent)
        assert answer.url == f"{url}/project/", self.problems(answer)

    # --- pages

    def open(self, path: str) -> str:
        """Open a page that has nothing to complain of; return its text."""
        answer = self._http.get(f"{self.url}{path}", timeout=60)
        assert answer.status_code == 200, f"{path}: {answer.status_code}"
        assert self.problems(answer) == [], path
        return answer.text

    def problems(self, answer: requests.Response) -> list[str]:
        """Return what a page says in red or yellow."""
        found = (*_ALERT.findall(answer.text), *_ERROR.findall(answer.text))
        words = [" ".join(re.sub(r"<[^>]+>", " ", one).split()) for one in found]
        return [one for one in words if one and _NO_SCRIPTS not in one and "{{" not in one]

    def token(self, path: str) -> str:
        """Return what a page's forms are protected by."""
        found = _TOKEN.search(self.open(path))
        assert found is not None, path
        return found[1]

    def send(self, path: str, **fields: Any) -> None:
        """Send a form of a page as it is but for some fields; it is taken."""
        page = self.open(path)
        token = _TOKEN.search(page)
        assert token is not None, path
        actions = [one for one in _ACTION.findall(page) if "logout" not in one]
        target = html.unescape(actions[-1]) if actions and actions[-1] else path
        answer = self._post(target, token[1], {**_fields(page), **fields}, form=True)
        assert answer.status_code == 200, f"{path}: {answer.status_code}"
        assert self.problems(answer) == [], path
        # A form that is refused is shown again; the next page shows other errors.
        assert "<form" not in answer.text, f"{path}: {answer.text}"

    def act(self, table: str, action: str, thing: str) -> None:
        """Press a button of a table's row."""
        path = _TABLES[table]
        sent = {"action": f"{table}__{action}__{thing}"}
        answer = self._post(path, self.token(path), sent)
        assert self.problems(answer) == [], f"{action} {thing}"

    def _post(
        self, path: str, token: str, fields: Mapping[str, Any], *, form: bool = False
    ) -> requests.Response:
        headers = {"Referer": f"{self.url}{path}"}
        headers |= {"X-Requested-With": "XMLHttpRequest"} if form else {}
        return self._http.post(
            f"{self.url}{path}",
            data={**fields, "csrfmiddlewaretoken": token},
            headers=headers,
            timeout=120,
        )

    # --- what the pages' scripts ask

    def ask(self, path: str, method: str = "GET", **body: Any) -> Any:
        """Ask Horizon's own API, as a page's script does."""
        answer = self._http.request(
            method,
            f"{self.url}/api/{path}",
            json=body or None,
            headers={
                "X-Requested-With": "XMLHttpRequest",
                "X-CSRFToken": self._http.cookies.get("csrftoken", ""),
                "Referer": self.url,
            },
            timeout=60,
        )
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.text else None

    def items(self, path: str) -> list[Any]:
        """Return a list of it."""
        found: list[Any] = self.ask(path)["items"]
        return found

    def named(self, path: str, name: str) -> Any:
        """Return the one of that name in a list."""
        [found] = [one for one in self.items(path) if one["name"] == name]
        return found


_TABLES = {
    "instances": "/project/instances/",
    "volumes": "/project/volumes/",
    "volume_snapshots": "/project/snapshots/",
    "networks": "/project/networks/",
    "security_groups": "/project/security_groups/",
}


def _fields(page: str) -> dict[str, str]:
    """Return what the fields of a page's forms hold."""
    found: dict[str, str] = {}
    for tag in re.findall(r"<input[^>]*>", page):
        given = dict(re.findall(r'([\w-]+)="([^"]*)"', tag))
        unset = given.get("type") in ("checkbox", "radio") and " checked" not in tag
        if given.get("name") and given.get("type") not in ("submit", "file") and not unset:
            found[given["name"]] = html.unescape(given.get("value", ""))
    for name, text in re.findall(r'<select[^>]*name="([^"]+)"[^>]*>(.*?)</select>', page, re.S):
        options = re.findall(r'<option[^>]*value="([^"]*)"([^>]*)>', text)
        chosen = [value for value, more in options if "selected" in more]
        found[name] = next(iter(chosen or [value for value, _ in options]), "")
    for name, text in re.findall(
        r'<textarea[^>]*name="([^"]+)"[^>]*>(.*?)</textarea>', page, re.S
    ):
        found[name] = html.unescape(text).lstrip("\n")
    return found


def refusals(cloud: EmbeddedCloud) -> dict[str, float]:
    """Return how often the APIs for clients refused which requests, as the metrics count them."""
    text = (cloud.state_dir / "micronova.conf").read_text()
    port = re.findall(r"\[metrics\]\nport = (\d+)", text)[0]
    answer = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=60)
    return {
        labels: float(value)
        for labels, value in _COUNTED.findall(answer.text)
        if 'api="placement"' not in labels
    }
