"""Unmodified clients against the Image API: openstacksdk."""

from __future__ import annotations

from collections.abc import Iterator

import openstack.connection
import pytest
from openstack import exceptions

from common import ids
from tests.fixtures import auth

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def cloud(url: str) -> Iterator[openstack.connection.Connection]:
    """A connection with a token, as after a login."""
    connection = openstack.connection.Connection(
        auth_type="admin_token",
        auth={"endpoint": url, "token": auth.READER},
        image_endpoint_override=url,
        region_name="RegionOne",
    )
    yield connection
    connection.close()


def test_images_are_found_by_name_and_by_id(cloud: openstack.connection.Connection) -> None:
    image_id = ids.named("image", "debian-12")
    for key in ("debian-12", image_id):
        found = cloud.image.find_image(key, ignore_missing=False)
        assert (found.id, found.name, found.os_distro) == (image_id, "debian-12", "debian")
    assert cloud.get_image("debian-13").architecture == "x86_64"
    assert cloud.image.find_image("nothing", ignore_missing=True) is None
    with pytest.raises(exceptions.NotFoundException):
        cloud.image.get_image("nothing")


def test_the_pages_of_a_list_are_followed(cloud: openstack.connection.Connection) -> None:
    whole = [image.name for image in cloud.image.images()]
    assert len(whole) == 5
    assert [image.name for image in cloud.image.images(limit=2)] == whole
    some = cloud.image.images(id=f"in:{ids.named('image', 'raw')}", sort="name:asc")
    assert [image.name for image in some] == ["raw"]
    assert len(cloud.list_images()) == 5


def test_changes_are_refused_in_words(cloud: openstack.connection.Connection) -> None:
    image = cloud.image.find_image("raw", ignore_missing=False)
    with pytest.raises(exceptions.ForbiddenException, match="protected and cannot be deleted"):
        cloud.image.delete_image(image)
    with pytest.raises(exceptions.ForbiddenException, match="read-only"):
        cloud.image.update_image(image, name="other")
    with pytest.raises(exceptions.ForbiddenException, match="read-only"):
        cloud.image.create_image("new", disk_format="raw", container_format="bare")


def test_schemas_and_members(cloud: openstack.connection.Connection) -> None:
    assert "min_ram" in cloud.image.get_image_schema().properties
    assert cloud.image.get_images_schema().properties
    assert cloud.image.get_import_info().import_methods["value"] == []
    with pytest.raises(exceptions.ForbiddenException, match="Only shared images"):
        list(cloud.image.members(cloud.image.find_image("raw", ignore_missing=False)))
