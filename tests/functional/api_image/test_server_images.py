"""Images of servers: only their project sees them, and deletes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from api.image.app import make_app
from common import ids
from tests.fixtures import auth
from tests.fixtures.listings import a_conf, a_database, an_image, served
from tests.functional.api_image.test_images import call

OWN, OTHERS = ids.named("image", "own"), ids.named("image", "others")
PUBLIC = ids.named("image", "debian-12")


@pytest.fixture
def conductor() -> mock.Mock:
    return mock.Mock()


@pytest.fixture
def url(tmp_path: Path, conductor: mock.Mock) -> Iterator[str]:
    home = {"cluster": "c1", "storage": "local", "node": "pve1", "shared": False}
    rows = [
        an_image("debian-12"),
        an_image("own", project_id="demo", server_uuid=ids.new_uuid(), home=home),
        an_image("others", project_id="other", server_uuid=ids.new_uuid(), home=home),
    ]
    engine = a_database(tmp_path, rows)
    with served(make_app(a_conf(), engine, auth.header_auth, conductor)) as root:
        yield root
    engine.dispose()


def listed(url: str, query: str = "", token: str = auth.MEMBER) -> set[str]:
    answer = call(f"{url}/v2/images?{query}", token=token)
    assert answer.status_code == 200, answer.text
    return {image["name"] for image in answer.json()["images"]}


def test_a_project_sees_its_own(url: str) -> None:
    assert listed(url) == {"debian-12", "own"}
    assert listed(url, token=auth.OTHER) == {"debian-12", "others"}
    assert listed(url, token=auth.ADMIN) == {"debian-12", "own", "others"}
    shown = call(f"{url}/v2/images/{OWN}").json()
    assert (shown["visibility"], shown["owner"], shown["protected"]) == ("private", "demo", False)
    assert call(f"{url}/v2/images/{OTHERS}").status_code == 404
    assert call(f"{url}/v2/images/{OTHERS}", token=auth.ADMIN).status_code == 200
    answer = call(f"{url}/v2/images?marker={OTHERS}")
    assert answer.status_code == 400, "a marker shows nothing either"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("visibility=private", {"own"}),
        ("visibility=public", {"debian-12"}),
        ("visibility=all", {"debian-12", "own"}),
        ("visibility=shared", set()),
        ("owner=demo", {"own"}),
        ("owner=other", set()),
        ("protected=true", {"debian-12"}),
        ("protected=false", {"own"}),
    ],
)
def test_filters_by_owner(url: str, query: str, names: set[str]) -> None:
    assert listed(url, query) == names


def test_its_data_cannot_be_had(url: str) -> None:
    answer = call(f"{url}/v2/images/{OWN}/file", token=auth.MEMBER)
    assert answer.status_code == 403
    assert "can't be downloaded here" in answer.text


def test_who_deletes_what(url: str, conductor: mock.Mock) -> None:
    def delete(image_id: str, token: str) -> int:
        return call(f"{url}/v2/images/{image_id}", "DELETE", token).status_code

    assert delete(PUBLIC, auth.MEMBER) == 403
    assert delete(PUBLIC, auth.ADMIN) == 403
    assert delete(OTHERS, auth.MEMBER) == 404
    assert delete(OWN, auth.READER) == 403
    assert conductor.delete_image.call_count == 0
    assert delete(OWN, auth.MEMBER) == 204
    assert delete(OTHERS, auth.ADMIN) == 204
    assert [one.args[1] for one in conductor.delete_image.call_args_list] == [OWN, OTHERS]
