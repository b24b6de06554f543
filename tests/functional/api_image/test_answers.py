"""What the Image API answers, held against the schemas that Glance itself serves."""

from __future__ import annotations

from typing import Any

import pytest

from api.image import app
from tests.fixtures import auth, responses
from tests.functional.api_image.test_user_images import call, make, patch, put, url, world
from tests.functional.conductor.harness import IMAGE

__all__ = ("url", "world")

#: path → Glance's schema of what a GET answers
SCHEMAS = {
    "/v2/images": "images",
    "/v2/images/{}": "image",
    "/v2/images/{}/members": "members",
    "/v2/images/{}/members/{}": "member",
    "/v2/images/{}/tasks": None,
    "/v2/tasks": "tasks",
    "/v2/metadefs/namespaces": "namespaces",
    "/v2/metadefs/namespaces/{}": "namespace",
}
#: paths whose answers are no records: versions, data, schemas, and what ends with 204
OTHERS = frozenset(
    {
        *("/", "/versions", "/v2/schemas/{}", "/v2/schemas/metadefs/{}"),
        *("/v2/info/import", "/v2/info/stores", "/v2/info/usage"),
        "/v2/metadefs/resource_types",
        *(f"/v2/images/{{}}/{name}" for name in ("file", "spool", "stage", "import")),
        *(f"/v2/images/{{}}/actions/{name}" for name in ("deactivate", "reactivate")),
        "/v2/images/{}/tags/{}",
    }
)


def test_every_route_is_held_against_a_schema() -> None:
    nothing: Any = None
    paths = {responses.shape(path) for path in app.routes(nothing, nothing, nothing, nothing)}
    unknown = {path for path in paths - set(SCHEMAS) - OTHERS if "metadefs" not in path}
    assert unknown == set()
    assert set(SCHEMAS) <= paths


def differences(answer: Any, name: str | None) -> list[str]:
    assert answer.status_code in (200, 201), answer.text
    return [] if name is None else responses.differences(responses.glance(name), answer.json())


def test_a_path_that_ends_with_nothing_is_none(url: str) -> None:
    """As in Glance: no collection, nor the record before the slash, and nothing of it changes."""
    image = make(url, auth.ADMIN, name="one", tags=["a"])
    nothing: Any = None
    paths = [path for path in app.routes(nothing, nothing, nothing, nothing) if path != "/"]
    for path in sorted({f"{path}/" for path in paths} | {_parent(path) for path in paths}):
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"):
            known = path.removeprefix("/v2").format_map(_Named(image_id=image["id"]))
            answer = call(f"{url}{known}", method, None, auth.ADMIN)
            assert (path, method, answer.status_code) == (path, method, 404)
    assert call(f"{url}/images/{image['id']}", token=auth.ADMIN).json() == image


def _parent(path: str) -> str:
    return path[: path.rindex("/") + 1] if path.endswith("}") else f"{path}/"


class _Named(dict[str, str]):
    """Names in paths; those that nothing is said of are ``x``."""

    def __missing__(self, name: str) -> str:
        return "x"


@pytest.mark.parametrize("token", [auth.MEMBER, auth.ADMIN])
def test_answers_are_as_glance_s(url: str, token: str) -> None:
    image = make(url, token, name="one", tags=["a"], hw_disk_bus="scsi", os_hidden=False)
    path = f"{url}/images/{image['id']}"
    member = {"member": "other"}
    asked = {
        "image": [
            call(f"{url}/images", "POST", {"name": "two", "visibility": "private"}, token),
            patch(url, image["id"], put("own", "x"), token=token),
            call(path, token=token),
            call(f"{url}/images/{IMAGE}", token=token),
        ],
        "images": [
            call(f"{url}/images", token=token),
            call(f"{url}/images?limit=1", token=token),
        ],
        "member": [
            call(f"{path}/members", "POST", member, token),
            call(f"{path}/members/other", token=token),
            call(f"{path}/members/other", "PUT", {"status": "accepted"}, auth.OTHER),
        ],
        "members": [call(f"{path}/members", token=token)],
        None: [call(f"{path}/tasks", token=token)],
        "namespaces": [(spaces := call(f"{url}/metadefs/namespaces", token=token))],
        "namespace": [
            call(f"{url}/metadefs/namespaces/{one['namespace']}", token=token)
            for one in spaces.json()["namespaces"]
        ],
    }
    wrong = [
        f"{answer.request.method} {name}: {one}"
        for name, answers in asked.items()
        for answer in answers
        for one in differences(answer, name)
    ]
    assert wrong == []


def test_the_tasks_of_administrators_are_as_glance_s(url: str) -> None:
    assert differences(call(f"{url}/tasks", token=auth.ADMIN), "tasks") == []


@pytest.mark.parametrize("name", ["image", "images", "member", "members", "task", "tasks"])
def test_the_schemas_that_are_served_have_glance_s_fields(url: str, name: str) -> None:
    """Clients read from them which fields an image has besides its properties."""
    served = call(f"{url}/schemas/{name}").json()
    glance = responses.content()["schemas"][responses.glance(name)]

    def shape(schema: Any) -> Any:
        if "items" in schema:
            return shape(schema["items"])
        fields = schema.get("properties", {})
        return {key: one.get("type") for key, one in fields.items() if key not in UNSERVED}

    ours, theirs = shape(served), shape(glance)
    assert {key: sorted([one] if isinstance(one, str) else one) for key, one in ours.items()} == {
        key: sorted([one] if isinstance(one, str) else one) for key, one in theirs.items()
    }


#: fields of Glance's other stores: images are where Proxmox VE has them, and no URL leads there
UNSERVED = frozenset({"direct_url", "locations", "stores"})
