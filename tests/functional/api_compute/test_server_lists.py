"""Lists of servers: filters, order, pages, and how many queries they take."""

from __future__ import annotations

import datetime
from urllib.parse import urlsplit

import pytest

from common import ids
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import IMAGE, ComputeApi, a_full_server, uuid_of
from tests.fixtures.listings import NOW, a_port, counted
from tests.functional.api_compute.conftest import MakeApi
from web.queries import MOST_VALUES

pytestmark = pytest.mark.database

HOUR = datetime.timedelta(hours=1)
#: a port beyond whose first addresses these are, of each family
PORT = ids.named("port", "3")
MORE = [["s6", "fd00::33"], ["s4", "10.9.0.33"]]


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    """Five servers of demo, one deleted, and one of other; the later the number the newer."""
    return make(
        a_full_server(1, name="web-1", tags=["blue", "prod"], created_at=NOW),
        a_full_server(
            2,
            name="web-2",
            tags=["green"],
            vm_state="error",
            created_at=NOW + HOUR,
            key_name=None,
        ),
        a_full_server(
            3,
            name="db.1",
            task_state="rebooting",
            tags=["prod"],
            created_at=NOW + 2 * HOUR,
            flavor={"id": "big", "name": "big", "vcpus": 8, "memory_mib": 1, "disk_gib": 1},
        ),
        a_full_server(
            4,
            name="mail",
            vm_state="stopped",
            hostname="post",
            created_at=NOW + 3 * HOUR,
            image_id=None,
            updated_at=NOW + 9 * HOUR,
        ),
        a_full_server(
            5,
            name="new",
            vm_state="building",
            task_state="scheduling",
            host=None,
            availability_zone=None,
            created_at=NOW + 4 * HOUR,
            launched_at=None,
        ),
        a_full_server(6, "other", name="theirs", created_at=NOW + 5 * HOUR),
        a_full_server(7, name="gone", vm_state="deleted", deleted_at=NOW + 7 * HOUR),
        a_port(1),
        a_port(2),
        a_port(3, ip="fd00::3", more_addresses=MORE),
        *(
            (schema.port_addresses, {"subnet_id": subnet, "ip": ip, "port_id": PORT})
            for subnet, ip in MORE
        ),
    )


def numbers(api: ComputeApi, query: str, *, version: str = "2.96", **more: object) -> list[int]:
    """The numbers of the servers that a list holds, in its order."""
    answer = api.get(f"/servers?{query}", version=version, **more)
    assert answer.status_code == 200, answer.text
    by_uuid = {uuid_of(number): number for number in range(8)}
    return [by_uuid[server["id"]] for server in answer.json["servers"]]


def test_newest_first_and_ones_own_only(api: ComputeApi) -> None:
    assert numbers(api, "") == [5, 4, 3, 2, 1]
    assert numbers(api, "", token=auth.OTHER) == [6]
    assert numbers(api, "", token=auth.ADMIN) == []
    assert numbers(api, "all_tenants=1", token=auth.ADMIN) == [6, 5, 4, 3, 2, 1]
    assert numbers(api, "all_tenants=1&project_id=other", token=auth.ADMIN) == [6]
    assert numbers(api, "all_tenants=false", token=auth.MEMBER) == [5, 4, 3, 2, 1]
    assert api.get("/servers?all_tenants=1").status_code == 403


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("name=web", [2, 1]),
        ("name=^web-[0-9]$", [2, 1]),
        ("name=b.1", [3, 1]),
        ("name=db%5C.1", [3]),
        ("name=100%25", []),
        ("status=error", [2]),
        ("status=ACTIVE", [3, 1]),
        ("status=REBOOT", [3]),
        ("status=ACTIVE&status=ERROR", [3, 2, 1]),
        ("status=PAUSED", []),
        ("vm_state=stopped", [4]),
        ("task_state=rebooting", [3]),
        ("flavor=big", [3]),
        ("flavor=nope", []),
        (f"image={IMAGE}", [5, 3, 2, 1]),
        ("ip=10.20.0.1", [1]),
        ("ip=10", [3, 2, 1]),
        ("ip6=fd00", [3]),
        # Whatever a port has beyond its first addresses is found, too.
        ("ip6=fd00::33", [3]),
        ("ip=10.9.0", [3]),
        ("ip=^10%5C.9%5C.0%5C.33$", [3]),
        ("ip=fd00", []),
        ("ip6=10.9", []),
        ("ip=10.20.0.1&ip6=fd00::33", [3, 1]),
        ("ip=10.9.0.33&name=web", []),
        ("tags=prod", [3, 1]),
        ("tags=prod,blue", [1]),
        ("tags-any=blue,green", [2, 1]),
        ("not-tags=prod,blue", [5, 4, 3, 2]),
        ("not-tags-any=prod,green", [5, 4]),
        ("hostname=post", [4]),
        ("key_name=laptop", [5, 4, 3, 1]),
        ("availability_zone=az", [4, 3, 2, 1]),
        ("power_state=1", [5, 4, 3, 2, 1]),
        ("locked=true", []),
        ("locked=false", [5, 4, 3, 2, 1]),
        ("progress=7", []),
        ("config_drive=True", [5, 4, 3, 2, 1]),
        ("config_drive=false", []),
        ("reservation_id=r-1", [5, 4, 3, 2, 1]),
        ("changes-since=2026-01-31T18:00:00Z", [4, 7]),
        ("changes-since=2026-01-31T12:30:00Z&changes-before=2026-01-31T14:30:00Z", [3, 2]),
        ("deleted=true", [5, 4, 3, 2, 1]),
        ("host=pve9", [5, 4, 3, 2, 1]),
    ],
)
def test_filters_of_users(api: ComputeApi, query: str, found: list[int]) -> None:
    assert numbers(api, query) == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("host=pve1", [6, 4, 3, 2, 1]),
        ("host=pve9", []),
        ("node=pve", [6, 4, 3, 2, 1]),
        ("deleted=true", [7]),
        ("deleted=nonsense", [6, 5, 4, 3, 2, 1]),
        (f"uuid={uuid_of(3)}", [3]),
        ("user_id=other", [6]),
        ("status=deleted", [7]),
        ("kernel_id=x", []),
        ("created_at=2026-01-31", [6, 5, 4, 3, 2, 1]),
    ],
)
def test_filters_of_administrators(api: ComputeApi, query: str, found: list[int]) -> None:
    assert numbers(api, f"all_tenants=1&{query}", token=auth.ADMIN) == found


@pytest.mark.parametrize(
    ("query", "version", "message"),
    [
        ("name=[", "2.1", "'[' is not a 'regex'"),
        ("name=a{99999999999}", "2.1", "'a{99999999999}' is not a 'regex'"),
        ("ip=a{99999999999}", "2.1", "'a{99999999999}' is not a 'regex'"),
        ("name=(a)%5C1", "2.1", "is not a 'regex'"),
        ("status=nonsense", "2.38", "Invalid status value"),
        ("nonsense=1", "2.75", "'nonsense' does not match any of the regexes"),
        ("limit=-1", "2.1", "Invalid input for query parameters limit"),
        ("limit=x", "2.1", "Invalid input for query parameters limit"),
        ("marker=x", "2.1", "marker [x] not found"),
        ("sort_key=nonsense", "2.1", "is not one of"),
        ("sort_dir=up", "2.1", "Unknown sort direction"),
        (
            "changes-since=2026-02-01T00:00:00Z&changes-before=2026-01-01T00:00:00Z",
            "2.66",
            "must be less than or equal to changes-before",
        ),
        ("name=a%00b", "2.1", "null character"),
    ],
)
def test_refused_queries(api: ComputeApi, query: str, version: str, message: str) -> None:
    answer = api.get(f"/servers?{query}", version=version)
    assert answer.status_code == 400
    assert message in answer.json["badRequest"]["message"]


def test_patterns_of_every_parameter_end(make: MakeApi) -> None:
    """Each would take for ever where every way is tried; names are as long as they can be."""
    names = [f"{'a' * 250}{number}" for number in range(10)]
    api = make(*(a_full_server(number, name=name) for number, name in enumerate(names)))
    for parameter in ("name", "ip", "ip6", "key_name", "hostname", "availability_zone"):
        for pattern in ("(a?){60}a{60}c", ".*.*.*c", "(a%2B)%2Bc"):
            answer = api.get(f"/servers?{parameter}={pattern}", version="2.96")
            assert (answer.status_code, answer.json["servers"]) == (200, [])
    assert len(api.get("/servers?name=(a?){60}a{60}3").json["servers"]) == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("WEB", [2, 1]),
        ("b.1", [3]),
        ("b_1", []),
        ("%25", []),
        ("gre", [2]),
        ("PRO", [3, 1]),
        ("rod", []),
        ("p%25", []),
        (uuid_of(3), [3]),
        (uuid_of(3).upper()[:-1], [3]),
        (uuid_of(3)[:3], []),
        ("10.20.0.1", [1]),
        ("10.20.", [2, 1]),
        ("10.9.0.3", []),
        ("10.9.0.", [3]),
        ("fd00:", [3]),
        ("FD00::33", [3]),
        ("0.20.", []),
        ("", [5, 4, 3, 2, 1]),
        ("theirs", []),
        ("gone", []),
    ],
)
def test_what_a_typed_text_finds(api: ComputeApi, text: str, found: list[int]) -> None:
    assert numbers(api, f"micronova:search={text}") == found
    assert numbers(api, f"micronova:search={text}&status=PAUSED") == []
    paged = numbers(api, f"micronova:search={text}&limit=1")
    assert paged == found[:1]


def test_a_typed_text_is_asked_for_where_nova_refuses_it(api: ComputeApi) -> None:
    asked = "micronova:search=web"
    assert numbers(api, asked, version="2.75") == [2, 1]
    everybodys = [6, 5, 4, 3, 2, 1]
    assert numbers(api, f"all_tenants=1&{asked}", version="2.74", token=auth.ADMIN) == everybodys
    assert numbers(api, f"all_tenants=1&{asked}r", token=auth.ADMIN) == []
    assert numbers(api, "all_tenants=1&micronova:search=their", token=auth.ADMIN) == [6]
    assert numbers(api, "micronova:search=their") == []
    for wrong in ("micronova:search=a&micronova:search=b", "micronova:search=" + "x" * 256):
        assert api.get(f"/servers?{wrong}", version="2.96").status_code == 400


def test_tags_of_odd_letters_are_found_by_their_beginnings(make: MakeApi) -> None:
    api = make(
        a_full_server(1, tags=["c++", 'say "hi"']),
        a_full_server(2, tags=["back\\slash", "50%", "a_b"]),
        a_full_server(3, tags=["größe"]),
    )
    for text, found in (
        ("c%2B", [1]),
        ('say "h', [1]),
        ("back\\s", [2]),
        ("50%25", [2]),
        ("a_", [2]),
        ("a%25", []),
        ("grö", [3]),
        (",", []),
    ):
        assert numbers(api, f"micronova:search={text}") == found, text


def test_totals_are_of_all_pages(api: ComputeApi) -> None:
    asked = "micronova:totals=true"
    for path in ("/servers", "/servers/detail"):
        answer = api.get(f"{path}?{asked}&limit=1", version="2.96").json
        assert len(answer["servers"]) == 1
        totals = answer["micronova:totals"]
        assert totals["count"] == 5
        assert totals["statuses"] == {
            "ACTIVE": 1,
            "ERROR": 1,
            "REBOOT": 1,
            "SHUTOFF": 1,
            "BUILD": 1,
        }
        assert totals["vcpus"] > 0
    marker = answer["servers"][0]["id"]
    query = f"{asked}&marker={marker}&micronova:search=web"
    answer = api.get(f"/servers?{query}", version="2.96").json
    assert answer["micronova:totals"]["count"] == 2
    nothing = api.get(f"/servers?{asked}&status=PAUSED", version="2.96").json
    assert nothing["micronova:totals"] == {
        "count": 0,
        "statuses": {},
        "vcpus": 0,
        "ram": 0,
        "disk": 0,
    }
    theirs = api.get(f"/servers?{asked}", version="2.96", token=auth.OTHER).json
    assert theirs["micronova:totals"]["count"] == 1
    for without in ("", "micronova:totals=false"):
        assert "micronova:totals" not in api.get(f"/servers?{without}", version="2.96").json
    assert "micronova:totals" not in api.get(f"/servers?{asked}", version="2.74").json
    assert api.get("/servers?micronova:totals=maybe", version="2.96").status_code == 400


def test_a_tag_is_no_pattern(make: MakeApi) -> None:
    api = make(a_full_server(1, tags=["c++"]), a_full_server(2, tags=["c"]))
    assert numbers(api, "tags=c%2B%2B") == [1]
    assert numbers(api, f"tags-any={'x,' * 120}c") == [2]


def test_a_statement_asks_for_so_many_tags_only(api: ComputeApi) -> None:
    most = ",".join(map(str, range(MOST_VALUES)))
    for parameter in ("tags", "tags-any", "not-tags", "not-tags-any"):
        assert api.get(f"/servers?{parameter}={most}", version="2.96").status_code == 200
        answer = api.get(f"/servers?{parameter}={most},more", version="2.96")
        assert answer.status_code == 400
        assert f"{MOST_VALUES} are allowed" in answer.json["badRequest"]["message"]


def test_the_shown_second_is_before_itself(api: ComputeApi) -> None:
    shown = api.get(f"/servers/{uuid_of(4)}").json["server"]["updated"]
    only = f"changes-since={shown}&changes-before={shown}"
    assert numbers(api, only) == [4]
    assert numbers(api, f"changes-before={shown}") == [5, 4, 3, 2, 7, 1]
    assert numbers(api, "changes-before=2026-01-31T20:59:59Z") == [5, 3, 2, 7, 1]
    assert numbers(api, "changes-before=9999-12-31T23:59:59Z") == [5, 4, 3, 2, 7, 1]


def test_internals_are_no_filters(api: ComputeApi) -> None:
    for name in ("_secret", "metadata"):
        answer = api.get(f"/servers?{name}=1", version="2.75", token=auth.ADMIN)
        assert answer.json["badRequest"]["message"] == f"Invalid filter field: {name}."


def test_what_old_versions_ignore(api: ComputeApi) -> None:
    assert numbers(api, "status=nonsense", version="2.37") == []
    assert numbers(api, "nonsense=1", version="2.74") == [5, 4, 3, 2, 1]
    assert numbers(api, "tags=prod", version="2.25") == [5, 4, 3, 2, 1]
    assert numbers(api, "hostname=post", version="2.89") == [5, 4, 3, 2, 1]
    assert numbers(api, "sort_key=vcpus", version="2.1") == [5, 4, 3, 2, 1]
    assert api.get("/servers?sort_key=vcpus", version="2.75").status_code == 400


def test_only_administrators_list_the_deleted(api: ComputeApi) -> None:
    assert api.get("/servers?status=deleted").status_code == 403


def test_order(api: ComputeApi) -> None:
    assert numbers(api, "sort_key=display_name&sort_dir=asc") == [3, 4, 5, 1, 2]
    assert numbers(api, "sort_key=key_name&sort_dir=asc&sort_key=created_at") == [2, 1, 3, 4, 5]
    assert numbers(api, "sort_key=updated_at&sort_dir=asc&limit=4") == [1, 2, 3, 5]
    assert api.get("/servers?sort_key=host").status_code == 403


@pytest.mark.parametrize("sort", ["", "&sort_key=key_name", "&sort_key=updated_at&sort_dir=asc"])
def test_pages_make_up_the_list(api: ComputeApi, sort: str) -> None:
    whole = numbers(api, sort.lstrip("&"))
    seen: list[int] = []
    path = f"/servers?limit=2{sort}"
    while path:
        answer = api.get(path, version="2.96").json
        seen += numbers(api, path.partition("?")[2])
        link = answer.get("servers_links", [{}])[0].get("href")
        path = f"/servers?{urlsplit(link).query}" if link else ""
    assert seen == whole
    assert numbers(api, "limit=0") == []


def test_a_page_is_no_longer_than_allowed(make: MakeApi) -> None:
    api = make(*(a_full_server(number) for number in range(1, 5)), max_limit=3)
    answer = api.get("/servers/detail?limit=1000").json
    assert len(answer["servers"]) == 3
    assert "marker=" in answer["servers_links"][0]["href"]
    assert "/servers/detail?" in answer["servers_links"][0]["href"]


@pytest.mark.parametrize("token", [auth.MEMBER, auth.ADMIN])
def test_a_detailed_list_takes_four_queries(make: MakeApi, token: str) -> None:
    few, many = range(1, 4), range(10, 40)
    api = make(*(a_full_server(number, vm_state="error") for number in few))
    for more in (few, many):
        if more is many:
            api.add(*(a_full_server(number, vm_state="error") for number in many))
        with counted(api.reader) as statements:
            answer = api.get("/servers/detail", version="2.96", token=token)
        assert answer.status_code == 200
        # Servers with their security groups and volumes; faults.
        assert statements() <= 2


def test_one_server_takes_one_query(api: ComputeApi) -> None:
    for token in (auth.MEMBER, auth.ADMIN):
        with counted(api.reader) as statements:
            assert (
                api.get(f"/servers/{uuid_of(1)}", version="2.96", token=token).status_code == 200
            )
        assert statements() == 1
