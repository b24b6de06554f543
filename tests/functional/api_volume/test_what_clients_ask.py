"""What clients ask besides volumes: filters, types, limits, services. Facts from Cinder."""

from __future__ import annotations

from typing import Any

import pytest

from common import clock, ids
from conductor.endpoints.quotas import QuotaEndpoint
from db import schema
from tests.fixtures import auth
from tests.functional.api_volume.conftest import VolumeApi
from tests.functional.api_volume.test_backups import SAFE, saved
from tests.functional.api_volume.test_snapshots import made as an_available_one
from tests.functional.api_volume.test_snapshots import taken
from tests.functional.api_volume.test_volumes import made, make, message, show

ADMIN = {"token": auth.ADMIN}


def names(answer: Any) -> list[str]:
    """The names in a list; it must have been answered."""
    status, body = answer
    assert status == 200, body
    return [one["name"] for one in next(iter(body.values()))]


@pytest.mark.parametrize("service", ["volume", "volumev3", "block-storage"])
def test_the_version_counts_by_any_name_of_the_service(api: VolumeApi, service: str) -> None:
    """gophercloud names the catalog's type."""
    header = {"OpenStack-API-Version": f"{service} 3.42"}
    status, _ = api.ask("GET", "/attachments", headers=header)
    assert status == 200
    header = {"OpenStack-API-Version": "compute 2.1,volumev3 3.26"}
    assert api.ask("GET", "/attachments", headers=header)[0] == 404


def test_a_filter_that_a_list_has_not_is_refused(api: VolumeApi) -> None:
    make(api, name="one")
    for path in ("volumes", "volumes/detail", "snapshots", "backups", "messages"):
        query = f"/{path}?color=red"
        assert api.ask("GET", query, version="3.30")[0] == 200
        status, why = message(api.ask("GET", query, version="3.31"))
        assert (status, why) == (400, "Invalid filters color are found in query options.")
        assert api.ask("GET", query, version="3.31", **ADMIN)[0] == 200
        assert api.ask("GET", f"/{path}?c%C3%B6lor=red", version="3.31", **ADMIN)[0] == 400
    everything = "all_tenants=1&limit=5&offset=0&sort=name:asc&name=one&status=creating"
    assert names(api.ask("GET", f"/volumes?{everything}", version="3.31")) == ["one"]
    assert api.ask("GET", "/volumes?name~=on", version="3.31")[0] == 400
    assert names(api.ask("GET", "/volumes?name~=on", version="3.34")) == ["one"]
    assert api.ask("GET", "/attachments?color=red", version="3.31")[0] == 400


@pytest.mark.parametrize("noun", ["volumes", "snapshots", "backups"])
def test_a_count_is_the_number_of_those_that_are_listed(api: VolumeApi, noun: str) -> None:
    """An administrator's list of all projects has no condition: Skyline shows the count."""

    def counted() -> tuple[int, ...]:
        counts = []
        for query in ("all_tenants=1&with_count=1", "with_count=1"):
            for path in (noun, f"{noun}/detail"):
                status, body = api.ask("GET", f"/{path}?{query}", version="3.45", **ADMIN)
                assert status == 200, body
                assert body["count"] == len(body[noun])
                counts.append(body["count"])
        return tuple(counts)

    assert counted() == (0, 0, 0, 0)
    api.world.storages.append(SAFE)
    api.world.beat()
    for volume_id in (an_available_one(api), an_available_one(api)):
        if noun != "volumes":
            {"snapshots": taken, "backups": saved}[noun](api, volume_id)
    assert counted() == (2, 2, 0, 0)


def test_filters_of_volumes(api: VolumeApi) -> None:
    make(api, name="one")

    def found(query: str) -> list[str]:
        return names(api.ask("GET", f"/volumes?{query}", version="3.65"))

    assert found("updated_at=gt:2000-01-01T00:00:00") in (["one"], [])
    assert found("created_at=gt:2000-01-01T00:00:00,lt:2999-01-01T00:00:00") == ["one"]
    assert found("created_at=lt:2000-01-01T00:00:00") == []
    assert found("consumes_quota=true") == ["one"]
    assert found("consumes_quota=false") == []
    assert found(f"group_id={ids.new_uuid()}") == []
    assert found("migration_status=migrating") == []
    assert api.ask("GET", "/volumes?updated_at=gt:x", version="3.60")[0] == 400


def test_filters_of_administrators(api: VolumeApi) -> None:
    """What Cinder's tables have not finds nothing, rather than everything."""
    volume_id = made(api, name="one", volume_type="data")
    image = {"os-set_image_metadata": {"metadata": {"os": "x"}}}
    assert api.ask("POST", f"/volumes/{volume_id}/action", image)[0] == 200
    assert api.ask("POST", "/snapshots", {"snapshot": {"volume_id": volume_id, "name": "one"}})
    (data,) = api.ask("GET", "/types")[1]["volume_types"]

    def found(query: str, version: str = "3.65", path: str = "volumes") -> list[str]:
        return names(api.ask("GET", f"/{path}?all_tenants=1&{query}", version=version, **ADMIN))

    for query in ("", "host=pve1@data%23data", "host=pve1@data", "host=pve1"):
        assert found(query) == ["one"], query
    assert found(f"volume_type_id={data['id']}") == found("glance_metadata={'os':'x'}") == ["one"]
    for query in ("host=pve2", "host=pve1@moon", f"volume_type_id={volume_id}", "color=red"):
        assert found(query) == found(query, "3.0") == [], query
    assert found("glance_metadata={'os':'y'}") == []
    assert found("glance_metadata={'os':'y'}", "3.3") == ["one"]
    for path in ("snapshots", "backups", "attachments"):
        assert api.ask("GET", f"/{path}?color=red", version="3.27", **ADMIN)[1] == {path: []}
    assert found("limit=9&sort=name&with_count=1&offset=0&name~=on", path="snapshots") == ["one"]
    mine: dict[str, Any] = {"version": "3.65"}
    for query, number in (
        *(("availability_zone=nova", 1), ("availability_zone=moon", 0)),
        *(("consumes_quota=true", 1), ("consumes_quota=false", 0)),
    ):
        assert len(names(api.ask("GET", f"/snapshots?{query}", **mine))) == number, query


@pytest.mark.parametrize(
    ("status", "seen"), [("attaching", False), ("attached", True), ("detaching", True)]
)
def test_a_volume_shows_who_has_it(api: VolumeApi, status: str, seen: bool) -> None:
    """``/attachments`` shows also who is about to."""
    volume_id, server = make(api), ids.new_uuid()
    row = an_attachment(volume_id, server) | {"status": status}
    api.world.conductor.store.run(
        lambda connection: connection.execute(schema.volume_attachments.insert().values(**row))
    )
    shown = show(api, volume_id)["attachments"]
    assert [one["server_id"] for one in shown] == [server] * seen
    _, body = api.ask("GET", "/attachments", version="3.27")
    assert [(one["instance"], one["status"]) for one in body["attachments"]] == [(server, status)]


def test_attachments_by_status(api: VolumeApi) -> None:
    volume_id, server = make(api), ids.new_uuid()
    row = an_attachment(volume_id, server)
    api.world.conductor.store.run(
        lambda connection: connection.execute(schema.volume_attachments.insert().values(**row))
    )

    def found(query: str) -> list[str]:
        status, body = api.ask("GET", f"/attachments?{query}", version="3.27")
        assert status == 200, body
        return [one["instance"] for one in body["attachments"]]

    assert found("") == [server]
    assert found("status=attached") == found("attach_status=attached") == [server]
    assert found("status=error") == []


def test_pages_of_attachments(api: VolumeApi) -> None:
    """The newest first, as Cinder's."""
    rows = []
    for number, project in enumerate(["demo", "demo", "demo", "other"]):
        row = an_attachment(make(api), f"server-{(2, 0, 1, 3)[number]}")
        rows.append(row | {"created_at": clock.after(number), "project_id": project})
    api.world.conductor.store.run(
        lambda connection: connection.execute(schema.volume_attachments.insert(), rows)
    )
    first, second, third, theirs = (row["id"] for row in rows)

    def found(query: str, **more: Any) -> list[str]:
        status, body = api.ask("GET", f"/attachments{query}", version="3.27", **more)
        assert status == 200, body
        return [one["id"] for one in body["attachments"]]

    assert found("") == found("/detail") == [third, second, first]
    assert found("?limit=1") == [third]
    assert found(f"?limit=1&marker={third}") == found("?limit=1&offset=1") == [second]
    assert found("?sort=instance_uuid:asc") == [second, third, first]
    by_server = "sort_key=instance_uuid&sort_dir=desc"
    assert found(f"?{by_server}&marker={first}") == [third, second]
    assert set(found("?all_tenants=1", **ADMIN)) == {first, second, third, theirs}
    assert found("?all_tenants=1&project_id=other", **ADMIN) == [theirs]
    for query, status in (
        (f"marker={ids.new_uuid()}", 404),
        (f"marker={theirs}", 404),
        ("sort=color", 400),
        ("limit=-1", 400),
    ):
        assert api.ask("GET", f"/attachments?{query}", version="3.27")[0] == status, query


def an_attachment(volume_id: str, server: str) -> dict[str, Any]:
    """A row, with a value for each column that must have one."""
    known = {"volume_id": volume_id, "server_uuid": server, "project_id": "demo"}
    known |= {"id": ids.new_uuid(), "status": "attached", "mode": "rw", "slot": 1}
    known |= {"created_at": clock.utcnow()}
    return known


def test_types_are_filtered_and_paged(api: VolumeApi) -> None:
    for name, public in (("gold", True), ("silver", False)):
        asked = {
            "volume_type": {
                "name": name,
                "os-volume-type-access:is_public": public,
                "extra_specs": {"storage:tier": name, "volume_backend_name": "data"},
            }
        }
        assert api.ask("POST", "/types", asked, **ADMIN)[0] == 200
    assert names(api.ask("GET", "/types")) == ["data", "gold"]
    # Only an administrator chooses among them.
    assert names(api.ask("GET", "/types?is_public=false")) == ["data", "gold"]
    assert names(api.ask("GET", "/types?is_public=None", **ADMIN)) == ["data", "gold", "silver"]
    assert names(api.ask("GET", "/types?is_public=false", **ADMIN)) == ["silver"]
    assert names(api.ask("GET", "/types?is_public=true", **ADMIN)) == ["data", "gold"]
    assert names(api.ask("GET", "/types", **ADMIN)) == ["data", "gold"]
    specs = "extra_specs={'storage:tier':'gold'}"
    assert names(api.ask("GET", f"/types?{specs}", version="3.52")) == ["gold"]
    assert names(api.ask("GET", f"/types?{specs}", version="3.51")) == ["data", "gold"]
    # What isn't shown can't be found out by a filter either.
    backend = "extra_specs={'volume_backend_name':'data'}"
    assert names(api.ask("GET", f"/types?{backend}", version="3.52")) == []
    assert names(api.ask("GET", f"/types?{backend}", version="3.52", **ADMIN)) == ["data", "gold"]
    assert api.ask("GET", "/types?color=red", version="3.52")[0] == 400
    assert api.ask("GET", "/types?extra_specs=x", version="3.52")[0] == 400
    assert names(api.ask("GET", "/types?sort=name:desc&limit=1")) == ["gold"]
    ((first, _second),) = [api.ask("GET", "/types")[1]["volume_types"]]
    assert names(api.ask("GET", f"/types?marker={first['id']}")) == ["gold"]
    assert names(api.ask("GET", "/types?offset=1")) == ["gold"]
    assert api.ask("GET", f"/types?marker={ids.new_uuid()}")[0] == 404
    assert api.ask("GET", "/types?sort=color")[0] == 400
    assert names(api.ask("GET", "/types?sort_dir=desc")) == ["gold", "data"]


def test_a_page_of_types_names_the_next(api: VolumeApi) -> None:
    """The key is Cinder's, in the singular."""
    a_type(api, "gold")
    status, body = api.ask("GET", "/types?limit=1", version="3.71")
    (first,), (link,) = body["volume_types"], body["volume_type_links"]
    assert (status, link["rel"]) == (200, "next")
    query = link["href"].partition("/types?")[2]
    assert query == f"limit=1&marker={first['id']}"
    assert names(api.ask("GET", f"/types?{query}")) == ["gold"]
    assert "volume_type_links" not in api.ask("GET", "/types")[1]


def a_type(api: VolumeApi, name: str, *, public: bool = True, **specs: str) -> str:
    asked = {"name": name, "os-volume-type-access:is_public": public, "extra_specs": specs}
    status, body = api.ask("POST", "/types", {"volume_type": asked}, **ADMIN)
    assert status == 200, body
    return str(body["volume_type"]["id"])


def test_extra_specs_of_a_type_that_volumes_have_stay(api: VolumeApi) -> None:
    """They say where its volumes are."""
    path = f"/types/{a_type(api, 'gold', volume_backend_name='data')}/extra_specs"
    volume_id = make(api, volume_type="gold")
    one = "volume_backend_name"
    for method, below, body in (
        ("POST", "", {"extra_specs": {one: "moon"}}),
        ("PUT", f"/{one}", {one: "moon"}),
        ("DELETE", f"/{one}", None),
    ):
        answer = api.ask(method, f"{path}{below}", body, **ADMIN)
        assert message(answer) == (400, "Volume Type is currently in use.")
    assert api.ask("GET", path, **ADMIN)[1] == {"extra_specs": {one: "data"}}
    assert show(api, volume_id)["volume_type"] == "gold"


def test_a_type_without_a_storage_takes_any(api: VolumeApi) -> None:
    gold = a_type(api, "gold", volume_backend_name="moon")
    assert show(api, make(api, volume_type="gold"))["status"] == "error"
    for volume in api.ask("GET", "/volumes")[1]["volumes"]:
        assert api.ask("DELETE", f"/volumes/{volume['id']}")[0] == 202
    path = f"/types/{gold}/extra_specs/volume_backend_name"
    assert api.ask("DELETE", path, **ADMIN)[0] == 202
    one = show(api, make(api, volume_type="gold"), token=auth.ADMIN)
    assert (one["status"], one["os-vol-host-attr:host"]) == ("creating", "pve1@data#data")


def test_an_administrator_uses_types_of_others(api: VolumeApi) -> None:
    a_type(api, "gold", public=False, volume_backend_name="data")
    asked = {"volume": {"size": 1, "volume_type": "gold"}}
    assert api.ask("POST", "/volumes", asked)[0] == 404
    status, body = api.ask("POST", "/volumes", asked, **ADMIN)
    assert (status, body["volume"]["volume_type"]) == (202, "gold")


@pytest.mark.parametrize("key", ["k" * 256, "a$b", "a b"])
def test_names_of_extra_specs(api: VolumeApi, key: str) -> None:
    path = f"/types/{a_type(api, 'gold')}/extra_specs"
    assert api.ask("PUT", f"{path}/{key}", {key: "x"}, **ADMIN)[0] == 400
    assert api.ask("POST", path, {"extra_specs": {key: "x"}}, **ADMIN)[0] == 400
    assert api.ask("PUT", f"{path}/k", {"k": "x"}, **ADMIN) == (200, {"k": "x"})
    assert api.ask("PUT", f"{path}/k", {"k": "x", "l": "x"}, **ADMIN)[0] == 400
    assert api.ask("GET", path, **ADMIN)[1] == {"extra_specs": {"k": "x"}}


def test_extra_specs_are_the_administrator_s_but_for_some(api: VolumeApi) -> None:
    seen = {"RESKEY:availability_zones": "nova", "multiattach": "<is> False"}
    seen |= {"replication_enabled": "<is> False", "storage:shared": "True"}
    specs = {**seen, "netapp:password": "secret"}
    asked = {"volume_type": {"name": "gold", "extra_specs": specs}}
    status, body = api.ask("POST", "/types", asked, **ADMIN)
    assert (status, body["volume_type"]["extra_specs"]) == (200, specs)
    path = f"/types/{body['volume_type']['id']}"
    for token, shown in ((auth.ADMIN, specs), (auth.MEMBER, seen), (auth.READER, seen)):
        assert api.ask("GET", path, token=token)[1]["volume_type"]["extra_specs"] == shown
        assert api.ask("GET", f"{path}/extra_specs", token=token)[1]["extra_specs"] == shown
        status = 200 if token == auth.ADMIN else 404
        assert api.ask("GET", f"{path}/extra_specs/netapp:password", token=token)[0] == status
        query = "extra_specs={'netapp:password':'secret'}"
        found = api.ask("GET", f"/types?{query}", version="3.52", token=token)
        assert names(found) == ["gold"] * (token == auth.ADMIN)


def test_a_type_is_described_without_a_name(api: VolumeApi) -> None:
    """cinderclient sends what it isn't given as null."""
    (data,) = api.ask("GET", "/types")[1]["volume_types"]
    path, asked = f"/types/{data['id']}", {"name": None, "description": "d"}
    status, body = api.ask("PUT", path, {"volume_type": asked}, **ADMIN)
    assert (status, body["volume_type"]["name"]) == (200, "data")
    assert body["volume_type"]["description"] == "d"
    for bad in ({}, {"name": None, "description": None}, {"name": " "}, {"name": ""}):
        assert api.ask("PUT", path, {"volume_type": bad}, **ADMIN)[0] == 400, bad
    assert api.ask("POST", "/types", {"volume_type": {"name": " "}}, **ADMIN)[0] == 400


def test_the_default_type_keeps_its_name_and_stays(api: VolumeApi) -> None:
    api.world.conductor.cloud.conf.set_override("default_type", "data", "volumes")
    (data,) = api.ask("GET", "/types")[1]["volume_types"]
    path = f"/types/{data['id']}"
    described = {"volume_type": {"name": "data", "description": "d"}}
    assert api.ask("PUT", path, described, **ADMIN)[0] == 200
    for method, body, what in (
        ("PUT", {"volume_type": {"name": "other"}}, "renamed"),
        ("DELETE", None, "deleted"),
    ):
        assert message(api.ask(method, path, body, **ADMIN)) == (
            400,
            f"The volume type {data['id']} is a default volume type and cannot be {what}.",
        )
    assert show(api, make(api))["volume_type"] == "data"


def test_no_type_encrypts(api: VolumeApi) -> None:
    (data,) = api.ask("GET", "/types")[1]["volume_types"]
    path = f"/types/{data['id']}/encryption"
    assert api.ask("GET", path)[0] == 403
    assert api.ask("GET", path, **ADMIN) == (200, {})
    body = {"encryption": {"provider": "luks"}}
    assert message(api.ask("POST", path, body, **ADMIN)) == (
        400,
        "Volumes are not encrypted here.",
    )
    for method in ("GET", "PUT", "DELETE"):
        sent = body if method == "PUT" else None
        assert api.ask(method, f"{path}/provider", sent, **ADMIN)[0] == 404, method
    assert api.ask("GET", f"/types/{ids.new_uuid()}/encryption", **ADMIN)[0] == 404


def test_limits_of_other_projects_and_of_the_class(api: VolumeApi) -> None:
    quota = {"quota_set": {"volumes": 3}}
    assert api.ask("PUT", "/os-quota-sets/demo", quota, **ADMIN)[0] == 200

    def most(query: str = "", **more: Any) -> int:
        status, body = api.ask("GET", f"/limits{query}", **more)
        assert status == 200, body
        return int(body["limits"]["absolute"]["maxTotalVolumes"])

    assert most() == 3
    assert most("?project_id=demo", version="3.39", **ADMIN) == 3
    assert most("?project_id=demo", version="3.38", **ADMIN) == 10
    assert most("?project_id=other", version="3.39") == 3
    path, wanted = "/os-quota-class-sets/default", {"quota_class_set": {"volumes": 4}}
    assert api.ask("PUT", path, wanted)[0] == 403
    status, body = api.ask("PUT", path, wanted, **ADMIN)
    assert (status, body["quota_class_set"]["volumes"]) == (200, 4)
    assert api.ask("GET", path, **ADMIN)[1]["quota_class_set"]["volumes"] == 4
    assert most("?project_id=other", version="3.39", **ADMIN) == 4
    assert most() == 3
    for bad in ({"nothing": 1}, {"volumes": -2}, {"volumes": "x"}, {"volumes": 1 << 40}):
        assert api.ask("PUT", path, {"quota_class_set": bad}, **ADMIN)[0] == 400, bad
    assert api.ask("PUT", f"{path}{'x' * 255}", wanted, **ADMIN)[0] == 400


def test_a_limit_isnt_less_than_what_is_used(api: VolumeApi) -> None:
    """Since Queens Cinder asks for that always, whatever ``skip_validation`` says."""
    make(api, size=2)
    path = "/os-quota-sets/demo"
    for asked in ({"volumes": 0}, {"snapshots": 3, "gigabytes": "1"}):
        status, why = message(api.ask("PUT", path, {"quota_set": asked}, **ADMIN))
        assert (status, "must be equal or greater than existing resources" in why) == (400, True)
    assert api.world.rows(schema.quota_limits) == []
    for most in (1, -1):
        quota = {"quota_set": {"volumes": most, "per_volume_gigabytes": 1}}
        assert api.ask("PUT", path, quota, **ADMIN)[0] == 200


def test_a_project_s_name_has_its_length(api: VolumeApi) -> None:
    quota = {"quota_set": {"volumes": 1}}
    for length, status in ((255, 200), (256, 400)):
        assert api.ask("PUT", f"/os-quota-sets/{'x' * length}", quota, **ADMIN)[0] == status


def test_a_project_without_limits_has_the_defaults(api: VolumeApi) -> None:
    """Its limits of servers, which the compute API sets, stay."""
    quotas, path = QuotaEndpoint(api.world.conductor.cloud), "/os-quota-sets/demo"
    quotas.set_quota(api.world.ctxt, "demo", {"cores": 3}, force=True)
    limits = {"quota_set": {"volumes": 3, "gigabytes_data": 5}}
    assert api.ask("PUT", path, limits, **ADMIN)[0] == 200
    assert api.ask("DELETE", path, **ADMIN)[0] == 200
    (left,) = api.world.rows(schema.quota_limits)
    assert (left.resource, left.hard_limit) == ("cores", 3)
    of_all = {"quota_class_set": {"volumes": 4}}
    assert api.ask("PUT", "/os-quota-class-sets/default", of_all, **ADMIN)[0] == 200
    assert api.ask("GET", path)[1]["quota_set"]["volumes"] == 4


@pytest.mark.parametrize(
    ("name", "instead"),
    [("os-attach", "compute API"), ("os-migrate_volume", "retype"), ("os-unmanage", "delete")],
)
def test_a_refused_action_says_what_is_there_in_its_place(
    api: VolumeApi, name: str, instead: str
) -> None:
    of_mine = f"/volumes/{make(api)}/action"
    status, why = message(api.ask("POST", of_mine, {name: {}}, **ADMIN))
    assert (status, instead in why) == (400, True), why


@pytest.mark.parametrize(
    "name",
    ["os-force_detach", "os-migrate_volume", "os-migrate_volume_completion", "os-unmanage"],
)
def test_what_administrators_may_ask_for_is_forbidden_to_members(
    api: VolumeApi, name: str
) -> None:
    of_mine = f"/volumes/{make(api)}/action"
    assert api.ask("POST", of_mine, {name: {}})[0] == 403
    assert api.ask("POST", of_mine, {name: {}}, **ADMIN)[0] == 400


def test_services_pools_and_extensions(api: VolumeApi) -> None:
    (old, *_) = api.ask("GET", "/os-services", **ADMIN)[1]["services"]
    assert not {"cluster", "backend_state"} & old.keys()
    (new, *_) = api.ask("GET", "/os-services", version="3.49", **ADMIN)[1]["services"]
    assert (new["cluster"], new["backend_state"]) == (None, new["state"])
    body = {"host": old["host"], "binary": "cinder-volume"}
    assert api.ask("PUT", "/os-services/disable", body)[0] == 403
    assert api.ask("PUT", "/os-services/nothing", body, **ADMIN)[0] == 404
    pools = "/scheduler-stats/get_pools"
    (pool,) = names(api.ask("GET", pools, **ADMIN))
    named = f"{pools}?name={pool.replace('#', '%23')}"
    assert names(api.ask("GET", named, version="3.28", **ADMIN)) == [pool]
    assert names(api.ask("GET", f"{pools}?name=other", version="3.28", **ADMIN)) == []
    # Before that version nothing is filtered.
    assert names(api.ask("GET", f"{pools}?name=other", version="3.27", **ADMIN)) == [pool]
    assert "AvailabilityZones" in names(api.ask("GET", "/extensions"))
    found = api.ask("GET", "/extensions/os-quota-sets")[1]["extension"]
    assert found["name"] == "Quotas"
    assert "Backups" in names(api.ask("GET", "/extensions"))
    assert api.ask("GET", "/extensions/backups-of-the-moon")[0] == 404
    _, body = api.ask("GET", "/resource_filters?resource=snapshot", version="3.33")
    (shown,) = body["resource_filters"]
    assert (shown["resource"], "name~" in shown["filters"]) == ("snapshot", True)
    assert api.ask("GET", "/resource_filters?resource=moon", version="3.33")[1] == {
        "resource_filters": []
    }


def test_nothing_waits_for_a_cleanup(api: VolumeApi) -> None:
    """Conductors take over by themselves what a dead one had in hand."""
    path, nothing = "/workers/cleanup", {"cleaning": [], "unavailable": []}
    for body in ({}, {"resource_type": "Volume", "is_up": "true"}, {"host": "pve1"}):
        assert api.ask("POST", path, body, version="3.24", **ADMIN) == (202, nothing), body
    assert api.ask("POST", path, {}, version="3.23", **ADMIN)[0] == 404
    assert api.ask("POST", path, {}, version="3.24")[0] == 403
    for bad in ({"color": "red"}, {"resource_type": "Moon"}, {"binary": "nova-compute"}):
        assert api.ask("POST", path, bad, version="3.24", **ADMIN)[0] == 400, bad
    volume_id = make(api)
    status, why = message(
        api.ask("POST", path, {"resource_id": volume_id}, version="3.24", **ADMIN)
    )
    assert (status, why) == (
        400,
        f"Invalid input received: There is no resource with UUID {volume_id} pending cleanup.",
    )


def test_an_unknown_zone_is_refused(api: VolumeApi) -> None:
    asked = {"volume": {"size": 1, "availability_zone": "moon"}}
    assert message(api.ask("POST", "/volumes", asked)) == (
        400,
        "Availability zone 'moon' is invalid.",
    )
    assert api.world.rows(schema.volumes) == []
    make(api, availability_zone="nova")


def test_names_of_metadata_may_have_a_slash(api: VolumeApi) -> None:
    """As those of the Cinder CSI driver."""
    metadata = {"cinder.csi.openstack.org/cluster": "kubernetes"}
    volume_id = make(api, metadata=metadata)
    assert api.ask("GET", f"/volumes/{volume_id}/metadata") == (200, {"metadata": metadata})
    action = f"/volumes/{volume_id}/action"
    image = {"os-set_image_metadata": {"metadata": {"a/b": "x" * 1000}}}
    assert api.ask("POST", action, image)[0] == 200
    image = {"os-set_image_metadata": {"metadata": {"a": "x" * 65_536}}}
    assert api.ask("POST", action, image)[0] == 400
