"""Lists of all APIs answer as many filters as may be, and refuse one more."""

from __future__ import annotations

import pytest
import requests

from tests.functional.cloud import EmbeddedCloud
from web.queries import MOST_VALUES

LISTS = [
    ("compute/v2.1/servers", "tags", "tags-any", "not-tags", "not-tags-any"),
    ("compute/v2.1/servers/detail", "status", "name", "sort_key"),
    ("compute/v2.1/flavors/detail", "sort_key"),
    ("compute/v2.1/os-migrations", "status"),
    ("compute/v2.1/os-hypervisors", "limit"),
    ("compute/v2.1/os-services", "binary"),
    ("compute/v2.1/os-server-groups", "limit"),
    ("image/v2/images", "tag", "name", "sort_key"),
    ("network/v2.0/networks", "id", "tags", "not-tags-any", "fields"),
    ("network/v2.0/subnets", "id", "tags-any"),
    ("network/v2.0/ports", "device_id", "id", "fixed_ips", "not-tags"),
    ("network/v2.0/security-groups", "id", "name", "tags"),
    ("network/v2.0/security-group-rules", "id"),
    ("volume/v3/volumes/detail", "status", "sort"),
    ("volume/v3/snapshots", "status"),
    ("volume/v3/backups", "status"),
    ("volume/v3/types", "extra_specs"),
    ("placement/resource_providers", "member_of", "required"),
    ("placement/allocation_candidates", "resources", "group_policy"),
    ("placement/traits", "name"),
    ("identity/projects", "tags", "not-tags-any"),
    ("identity/users", "name"),
]
SHORT = ["a", "b", "c", "d"]


def status_of(cloud: EmbeddedCloud, path: str, query: str) -> tuple[int, str]:
    """Return the status and the text of an administrator's request for a list."""
    base = cloud.auth_url if path.startswith("identity/") else f"{cloud.base_url}/"
    path = path.replace("identity/", "/")
    answer = requests.get(
        f"{base}{path}?{query}",
        headers={
            "X-Auth-Token": str(cloud.connection("micronova-admin").session.get_token()),
            "OpenStack-API-Version": "compute 2.100, placement 1.36, volume 3.60",
        },
        timeout=60,
    )
    return answer.status_code, answer.text


@pytest.mark.parametrize("asked", LISTS, ids=lambda asked: asked[0])
def test_a_list_refuses_more_filters_than_may_be(
    three_nodes: EmbeddedCloud, asked: tuple[str, ...]
) -> None:
    path, *names = asked
    for name in names:
        for form in (f"&{name}=", ","):
            most = f"{name}=" + form.join(SHORT * (MOST_VALUES // 4))
            status, text = status_of(three_nodes, path, most)
            assert status in (200, 400), (name, form, status, text[:300])
            assert "128 are allowed" not in text
            status, text = status_of(three_nodes, path, f"{most}{form}a")
            assert status == 400, (name, form, text[:300])
            assert "has 129 values; 128 are allowed" in text
    mixed = "&".join(f"{name}={','.join(SHORT * 20)}" for name in (*names, "a"))
    assert status_of(three_nodes, path, mixed)[0] == 400


def test_values_of_all_filters_that_may_be_are_looked_for(three_nodes: EmbeddedCloud) -> None:
    each = ",".join(f"t{number}" for number in range(MOST_VALUES // 4))
    tags = "&".join(f"{name}={each}" for name in LISTS[0][1:])
    for path in ("compute/v2.1/servers", "network/v2.0/ports"):
        assert status_of(three_nodes, path, tags)[0] == 200, path
    many = "&".join(f"tag=t{number}" for number in range(MOST_VALUES))
    assert status_of(three_nodes, "image/v2/images", many)[0] == 200
    properties = "&".join(f"p{number}=x" for number in range(MOST_VALUES))
    assert status_of(three_nodes, "image/v2/images", properties)[0] == 200
