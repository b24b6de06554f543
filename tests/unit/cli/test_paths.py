"""Names in paths: what a user writes never ends a path, and names no other resource."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pytest
from openstack import exceptions

from cli.admin.quota_spread import Quotas
from cli.cloud import Cloud
from cli.errors import CommandFailed
from cli.finding import NotFound, find, segment
from tests.fixtures.nasty import IN_PATHS
from tests.fixtures.sdk import FakeConnection, FakeProxy, run


@pytest.mark.parametrize("name", IN_PATHS)
def test_a_segment_is_one_part_of_a_path(name: str) -> None:
    sent = urlsplit(f"http://api.example/hosts/{segment(name)}/metrics")
    assert sent.query == sent.fragment == ""
    assert [unquote(part) for part in sent.path.split("/")] == ["", "hosts", name, "metrics"]


@pytest.mark.parametrize("name", [".", ".."])
def test_a_step_in_a_path_is_no_name(name: str) -> None:
    with pytest.raises(CommandFailed):
        segment(name)


_ASKED = {
    ("node", "drain", "--dry-run"): "/drains/{}",
    ("capacity", "--without"): "/evacuations/{}",
    ("host", "metrics"): "/hosts/{}/metrics",
}


@pytest.mark.parametrize("words", _ASKED)
@pytest.mark.parametrize("name", [one for one in IN_PATHS if not one.startswith("-")])
def test_a_host(words: tuple[str, ...], name: str) -> None:
    refused = exceptions.NotFoundException("No such host.")
    compute = FakeProxy(get=refused)
    ran = run(FakeConnection(compute), *words, name)
    assert ran.code == 1
    [(asked, _)] = compute.called("get")
    assert asked == (_ASKED[words].format(quote(name, safe="")),)


@pytest.mark.parametrize("name", IN_PATHS)
def test_a_project_that_can_not_be_looked_up(name: str) -> None:
    limit = {"quota_set": {"cores": {"limit": 5, "in_use": 2, "reserved": 1}}}
    answer = SimpleNamespace(status_code=200, json=lambda: limit)
    compute = FakeProxy(get=answer, put=answer)
    quotas = Quotas({"north": Cloud(lambda: FakeConnection(compute))}, name)
    quotas.read("cores")
    quotas.set("north", "cores", 9)
    path = f"/os-quota-sets/{quote(name, safe='')}"
    assert [args for args, _ in compute.called("get")] == [(f"{path}/detail",)]
    assert [args for args, _ in compute.called("put")] == [(path,)]


def _other(*_: Any, **__: Any) -> Any:
    """Answer as the SDK does, which asks for what is before a ``#`` or a ``?``."""
    return SimpleNamespace(id="web", name="another")


@pytest.mark.parametrize("name", ["web#1", "web?x=y", "web/1", "web%2F1", "..", "#"])
@pytest.mark.parametrize(
    ("api", "kind", "plural"),
    [
        ("compute", "flavor", "flavors"),
        ("compute", "server", "servers"),
        ("image", "image", "images"),
        ("network", "network", "networks"),
        ("block_storage", "volume", "volumes"),
    ],
)
def test_what_can_be_no_id_is_found_by_name_alone(
    api: str, kind: str, plural: str, name: str
) -> None:
    listed = [SimpleNamespace(id=f"id-{one}", name=one) for one in ("web", name, f"{name}0")]
    answers: dict[str, Any] = {f"find_{kind}": _other, plural: lambda **_: iter(listed)}
    proxy = FakeProxy(**answers)
    connection = FakeConnection(**{api: proxy})
    assert find(connection, kind, name).id == f"id-{name}"
    assert not proxy.called(f"find_{kind}")
    listed[:] = listed[:1]
    with pytest.raises(NotFound):
        find(connection, kind, name)
    listed[:] = [SimpleNamespace(id=one, name=name, status=None) for one in ("1", "2")]
    with pytest.raises(CommandFailed, match="take an ID: 1, 2"):
        find(connection, kind, name)


@pytest.mark.parametrize("kind", ["project", "user"])
def test_so_are_projects_and_users(kind: str) -> None:
    listed = [SimpleNamespace(id=f"id-{one}", name=one) for one in ("web", "web#1")]
    answers: dict[str, Any] = {f"find_{kind}": _other, f"{kind}s": lambda **_: iter(listed)}
    cloud = Cloud(lambda: FakeConnection(identity=FakeProxy(**answers)))
    found = cloud.project_id("web#1") if kind == "project" else cloud.user_id("web#1")
    assert found == "id-web#1"
