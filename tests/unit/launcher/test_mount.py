"""Several applications on one port."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from launcher.mount import Mount


def app(name: str) -> Callable[..., list[bytes]]:
    def answer(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return [f"{name} {environ['SCRIPT_NAME']} {environ['PATH_INFO']}".encode()]

    return answer


def ask(path: str) -> tuple[str, str]:
    said = []
    mount = Mount({"compute": app("compute"), "image": app("image")})
    environ = {"PATH_INFO": path, "wsgi.url_scheme": "http", "HTTP_HOST": "cloud:80"}
    body = b"".join(mount(environ, lambda status, headers: said.append(status)))  # type: ignore[arg-type]
    return said[0], body.decode()


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/compute", "compute /compute "),
        ("/compute/", "compute /compute /"),
        ("/compute/v2.1/servers", "compute /compute /v2.1/servers"),
        ("/image/v2/images/a/b", "image /image /v2/images/a/b"),
        ("//image//v2", "image /image //v2"),
    ],
)
def test_the_first_segment_names_the_application(path: str, answer: str) -> None:
    assert ask(path) == ("200 OK", answer)


@pytest.mark.parametrize("path", ["/volume/v3", "/computers", "//compute"])
def test_others_are_not_found(path: str) -> None:
    status, _ = ask(path)
    assert status == ("200 OK" if path == "//compute" else "404 Not Found")


def test_the_root_lists_them() -> None:
    status, body = ask("/")
    assert status == "200 OK"
    assert json.loads(body)["apis"]["image"] == "http://cloud:80/image/"
