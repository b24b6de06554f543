"""No list reveals through its order what may not be seen: an invisible marker is an unknown one.

The lists are taken from the route tables, so that one which is added has to be named here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import falcon
import falcon.testing
import pytest
import sqlalchemy as sa

import placement.schemas
from api.compute.microversions import VERSIONS
from api.compute.routes import ROUTES
from api.image import filters
from api.image.app import make_app as make_image_api
from api.network import attributes
from api.network.app import make_app as make_network_api
from common import ids
from db import schema
from placement.routes import ROUTES as PLACEMENT_ROUTES
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_flavor, a_full_server, a_keypair, uuid_of
from tests.fixtures.listings import (
    NOW,
    Row,
    a_conf,
    a_database,
    a_network,
    a_port,
    a_security_group,
    a_server,
    a_subnet,
    an_image,
)
from web.guard import operation_of

LATEST = "2.96"


@dataclass(frozen=True)
class Listing:
    """A list that takes markers: of what others have, and of what is one's own."""

    path: str
    hidden: Sequence[str]
    """Markers of what who asks may not see."""
    own: str
    """A marker that they may see, and that has a successor in the list."""


def an_operation(number: int, server: int, project: str) -> Row:
    values: dict[str, Any] = {
        "resource_type": "server",
        "resource_id": uuid_of(server),
        "project_id": project,
        "user_id": project,
        "request_id": request_of(number),
        "action": "create",
        "state": "done",
        "context": {},
        "params": {},
        "plan": {},
        "started_at": NOW,
        "updated_at": NOW,
        "finished_at": NOW,
    }
    return schema.operations, values


def request_of(number: int) -> str:
    return f"req-{ids.named('request', str(number))}"


THEIRS, GONE = uuid_of(5), uuid_of(6)
USAGE = "/os-simple-tenant-usage"
ACTIONS = "/servers/{server_id}/os-instance-actions"

COMPUTE: Mapping[str, Listing] = {
    **{
        path: Listing(path, (THEIRS, GONE), uuid_of(2))
        for path in (
            *("/servers", "/servers/detail"),
            *("/os-volumes_boot", "/os-volumes_boot/detail"),
        )
    },
    **{path: Listing(path, ("secret",), "big") for path in ("/flavors", "/flavors/detail")},
    "/os-keypairs": Listing("/os-keypairs", ("theirs",), "laptop"),
    ACTIONS: Listing(
        ACTIONS.format(server_id=uuid_of(1)), (request_of(5), request_of(3)), request_of(2)
    ),
    # Its markers are places in the queue.
    "/waiting": Listing("/waiting", (uuid_of(5),), "0"),
    f"{USAGE}/{{project_id}}": Listing(f"{USAGE}/demo", (THEIRS, GONE), uuid_of(2)),
}
#: lists of those who see everything
OPERATORS = {
    *("/os-hypervisors", "/os-hypervisors/detail", "/os-migrations", "/queues", "/operations"),
    "/storages",
    USAGE,
}


@pytest.fixture(scope="module")
def compute(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComputeApi]:
    """Two projects with servers, flavors and key pairs of their own."""
    rows = [
        *(a_full_server(number, created_at=NOW.replace(minute=number)) for number in (1, 2, 3)),
        a_full_server(4, vm_state="deleted", deleted_at=NOW),
        a_full_server(5, "other", name="secret", description="secret"),
        a_full_server(6, "other", vm_state="deleted", deleted_at=NOW),
        a_flavor(),
        a_flavor("big"),
        a_flavor("secret", is_public=False, vcpus=64),
        a_keypair(),
        a_keypair("second"),
        a_keypair("theirs", "other"),
        *(an_operation(number, 1, "demo") for number in (1, 2)),
        an_operation(3, 2, "demo"),
        an_operation(5, 5, "other"),
    ]
    folder: Path = tmp_path_factory.mktemp("compute")
    api = ComputeApi(f"sqlite:///{folder / 'cloud.sqlite'}").add(*rows)
    yield api
    api.close()


def lists_with_markers() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(path, schema of the query) of the compute API's lists."""
    for row in ROUTES:
        for handler in row.handlers("GET"):
            described = operation_of(handler)
            validate = described.query and described.query.at(VERSIONS.newest)
            if validate and "marker" in validate.schema.get("properties", {}):
                yield row.path, validate.schema["properties"]


def sort_keys(parameters: Mapping[str, Any]) -> Sequence[str]:
    keys: Sequence[str] = parameters.get("sort_key", {}).get("items", {}).get("enum", ())
    return keys


def test_every_list_of_compute_is_named_here() -> None:
    assert {path for path, _ in lists_with_markers()} == COMPUTE.keys() | OPERATORS


@pytest.mark.parametrize(
    ("path", "parameters"), [pytest.param(*each, id=each[0]) for each in lists_with_markers()]
)
def test_what_others_have_is_no_marker_in_compute(
    compute: ComputeApi, path: str, parameters: Mapping[str, Any]
) -> None:
    if path in OPERATORS:
        assert compute.get(path, version=LATEST).status_code == 403
        return
    listing = COMPUTE[path]
    orders: list[dict[str, str]] = [{}] + [
        {"sort_key": key, "sort_dir": direction}
        for key, direction in itertools.product(sort_keys(parameters), ("asc", "desc"))
    ]
    for order in orders:
        unknown = answer_of(compute, listing.path, "nothing", order)
        assert unknown[0] in {400, 403}
        for marker in listing.hidden:
            assert answer_of(compute, listing.path, marker, order) == unknown, order
    assert answer_of(compute, listing.path, listing.own, {})[0] == 200


def answer_of(
    api: ComputeApi, path: str, marker: str, query: Mapping[str, str], token: str = auth.MEMBER
) -> tuple[int, str]:
    asked = urlencode({"limit": "1", "marker": marker, **query})
    answer = api.get(f"{path}?{asked}", version=LATEST, token=token)
    return answer.status_code, answer.text.replace(marker, "<marker>")


def uuids(api: ComputeApi, query: str, token: str = auth.MEMBER) -> list[str]:
    answer = api.get(f"/servers?{query}", version=LATEST, token=token)
    assert answer.status_code == 200, answer.text
    return [server["id"] for server in answer.json["servers"]]


def test_administrators_page_through_all_projects(compute: ComputeApi) -> None:
    whole = uuids(compute, "all_tenants=1", auth.ADMIN)
    assert THEIRS in whole
    pages = [uuids(compute, "all_tenants=1&limit=1", auth.ADMIN)]
    while pages[-1]:
        query = f"all_tenants=1&limit=1&marker={pages[-1][-1]}"
        pages.append(uuids(compute, query, auth.ADMIN))
    assert list(itertools.chain(*pages)) == whole
    unknown = answer_of(compute, "/servers", "nothing", {}, auth.ADMIN)
    assert answer_of(compute, "/servers", THEIRS, {}, auth.ADMIN) == unknown
    flavors = compute.get("/flavors?is_public=none&marker=big", token=auth.ADMIN).json["flavors"]
    assert [flavor["id"] for flavor in flavors] == ["m1.small", "secret"]


def test_a_server_deleted_in_between_is_still_a_marker(compute: ComputeApi) -> None:
    """Nova looks its marker up among the deleted ones too."""
    mine = uuid_of(4)
    whole = uuids(compute, "sort_key=created_at&sort_dir=asc")
    assert mine not in whole
    assert uuids(compute, f"sort_key=created_at&sort_dir=asc&marker={mine}")
    changed = "changes-since=2000-01-01T00:00:00Z&sort_key=uuid&sort_dir=asc"
    everything = uuids(compute, changed)
    assert mine in everything
    behind = everything[everything.index(mine) + 1 :]
    assert uuids(compute, f"{changed}&marker={mine}") == behind
    assert uuids(compute, f"deleted=true&all_tenants=1&marker={GONE}", auth.ADMIN) == [mine]


def test_a_server_that_left_the_filter_is_still_a_marker(compute: ComputeApi) -> None:
    assert uuids(compute, f"status=ERROR&marker={uuid_of(2)}") == []
    assert uuids(compute, f"name=server-1&marker={uuid_of(2)}") == [uuid_of(1)]


def test_a_flavor_that_was_granted_is_a_marker(tmp_path: Path) -> None:
    api = ComputeApi(f"sqlite:///{tmp_path / 'cloud.sqlite'}")
    api.add(a_flavor("a", id=1, is_public=False), a_flavor("b", id=2))
    api.add((schema.flavor_access, {"flavor_id": 1, "project_id": "demo"}))
    assert [one["id"] for one in api.get("/flavors?marker=a").json["flavors"]] == ["b"]
    assert api.get("/flavors?marker=a", token=auth.OTHER).status_code == 400
    api.close()


# --- the APIs whose routes have no schemas: a list that refuses a marker takes markers


@dataclass(frozen=True)
class Nouns:
    """A list of the network API: what it may be sorted by, and markers nobody may see."""

    attributes: Sequence[attributes.Attribute]
    hidden: Sequence[str] = ()


NETWORK: Mapping[str, Nouns] = {
    "/v2.0/networks": Nouns(attributes.NETWORK, (ids.named("network", "secret"),)),
    "/v2.0/subnets": Nouns(attributes.SUBNET, (ids.named("subnet", "secret/10.40.0.0/24"),)),
    "/v2.0/ports": Nouns(attributes.PORT, (ids.named("port", "21"),)),
    "/v2.0/security-groups": Nouns(
        attributes.SECURITY_GROUP, (ids.named("security group", "other"),)
    ),
    "/v2.0/security-group-rules": Nouns(
        attributes.SECURITY_GROUP_RULE, (ids.named("security group rule", "other"),)
    ),
    "/v2.0/address-groups": Nouns(attributes.ADDRESS_GROUP),
    "/v2.0/default-security-group-rules": Nouns(attributes.DEFAULT_RULE),
}
#: of definitions there are only everybody's here
IMAGE_LISTS = frozenset({"/v2/images", "/v2/metadefs/namespaces"})
IMAGE: Mapping[str, Sequence[str]] = {"/v2/images": (ids.named("image", "gone"),)}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sa.Engine]:
    """Images, one of them deleted, and what two projects have of networks."""
    rows = [
        an_image("debian-12"),
        an_image("debian-13"),
        an_image("gone", status="deleted"),
        a_network("vmbr0"),
        a_network("vmbr1"),
        a_subnet("vmbr0"),
        a_subnet("vmbr1", "10.30.0.0/24"),
        a_network("secret", project_id="other", discovered=False),
        a_subnet("secret", "10.40.0.0/24", project_id="other"),
        *a_security_group("demo"),
        *a_security_group("other"),
        a_server(11),
        a_server(21, "other"),
        a_port(11),
        a_port(12),
        a_port(21, "other"),
    ]
    engine = a_database(tmp_path_factory.mktemp("lists"), rows)
    yield engine
    engine.dispose()


@dataclass(frozen=True)
class Api:
    """An API: what it answers, and the application with its routes."""

    client: falcon.testing.TestClient
    app: falcon.App[Any, Any]


def an_api(make: Callable[..., Any], database: sa.Engine) -> Api:
    inside: list[Any] = []

    def protect(app: Any, **options: Any) -> Any:
        inside.append(app)
        return auth.header_auth(app, **options)

    made = make(a_conf(), database, protect)
    return Api(falcon.testing.TestClient(made), inside[0])


@pytest.fixture(scope="module")
def network(database: sa.Engine) -> Api:
    return an_api(make_network_api, database)


@pytest.fixture(scope="module")
def image(database: sa.Engine) -> Api:
    return an_api(make_image_api, database)


def ask(api: Api, path: str, marker: str | None, **query: str) -> tuple[int, str]:
    asked = {"limit": "1", **({} if marker is None else {"marker": marker}), **query}
    headers = {"X-Auth-Token": auth.MEMBER, "Accept": "application/json"}
    answer = api.client.simulate_get(path, params=asked, headers=headers)
    return answer.status_code, answer.text.replace(marker or "", "<marker>" if marker else "")


def takes_markers(api: Api) -> set[str]:
    """The paths that answer otherwise with an unknown marker than without one."""
    paths = [path for path in templates(api.app) if "{" not in path]
    assert len(paths) >= 5
    return {
        path
        for path in paths
        if ask(api, path, None)[0] == 200 and ask(api, path, "nothing")[0] in {400, 404}
    }


def templates(app: falcon.App[Any, Any]) -> Iterator[str]:
    """Every path that has a responder."""
    nodes: list[Any] = list(app._router._roots)
    while nodes:
        node = nodes.pop()
        nodes += node.children
        if node.uri_template:
            yield node.uri_template


def test_every_list_of_networks_is_named_here(network: Api) -> None:
    assert takes_markers(network) == NETWORK.keys()


def test_every_list_of_images_is_named_here(image: Api) -> None:
    assert takes_markers(image) == IMAGE_LISTS


@pytest.mark.parametrize("path", NETWORK)
def test_what_others_have_is_no_marker_in_networks(network: Api, path: str) -> None:
    orders: list[dict[str, str]] = [{}] + [
        {"sort_key": each.name, "sort_dir": direction}
        for each, direction in itertools.product(NETWORK[path].attributes, ("asc", "desc"))
        if each.listed_by and each.sorted_by and each.rule is None
    ]
    for order, backwards in itertools.product(orders, ("true", "false")):
        asked = {**order, "page_reverse": backwards}
        unknown = ask(network, path, "nothing", **asked)
        assert unknown[0] == 404
        for marker in NETWORK[path].hidden:
            assert ask(network, path, marker, **asked) == unknown, asked


def test_a_deleted_image_is_no_marker(image: Api) -> None:
    for key in filters._SORT_FIELDS:
        unknown = ask(image, "/v2/images", "nothing", sort_key=key)
        assert unknown[0] == 400
        for marker in IMAGE["/v2/images"]:
            assert ask(image, "/v2/images", marker, sort_key=key) == unknown, key


def test_administrators_page_through_all_ports(network: Api) -> None:
    headers = {"X-Auth-Token": auth.ADMIN}
    params = {"limit": "9", "sort_key": "mac_address", "sort_dir": "asc"}
    params["marker"] = ids.named("port", "12")
    answer = network.client.simulate_get("/v2.0/ports", params=params, headers=headers)
    assert [port["id"] for port in answer.json["ports"]] == [ids.named("port", "21")]


def test_placement_has_no_markers() -> None:
    """Its lists are whole, or limited without a next page; but for our own one."""
    folder = Path(next(iter(placement.schemas.__path__)))
    assert PLACEMENT_ROUTES
    lines = [line for path in folder.glob("*.py") for line in path.read_text().splitlines()]
    marked = [line for line in lines if "marker" in line]
    assert [line.partition(":")[0] for line in marked] == ["LIST_ALL"]
