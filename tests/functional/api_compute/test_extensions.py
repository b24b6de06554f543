"""What Nova's clients ask of extensions."""

from __future__ import annotations

import pytest

from api.compute.extension_names import OWN
from tests.fixtures import auth, responses
from tests.fixtures.compute import ComputeApi

pytestmark = pytest.mark.database


@pytest.mark.parametrize("version", ["2.1", "2.102"])
def test_nova_s_list_is_whole_by_alias(api: ComputeApi, version: str) -> None:
    """Nova's is a constant, which says nothing of what an installation can do; ours are beside."""
    answer = api.get("/extensions", version=version, token=auth.MEMBER)
    assert answer.status_code == 200
    listed = answer.json["extensions"]
    aliases = [one["alias"] for one in listed]
    assert aliases == sorted(aliases)
    own = {one for one in aliases if one.startswith("micronova-")}
    assert own == set(OWN)
    assert len(set(aliases)) == len(aliases) == 99 + len(own)
    assert {"NMN", "os-shelve", "os-volumes", "os-rescue", "os-cells"} < set(aliases)
    fields = ["alias", "description", "links", "name", "namespace", "updated"]
    assert all(sorted(one) == fields and one["description"] for one in listed)


def test_one(api: ComputeApi) -> None:
    shown = api.get("/extensions/OS-EXT-STS", token=auth.MEMBER).json["extension"]
    assert shown in api.get("/extensions", token=auth.MEMBER).json["extensions"]
    assert (shown["alias"], shown["name"], shown["links"]) == ("OS-EXT-STS", "ExtendedStatus", [])
    answer = api.get("/extensions/os-moon", token=auth.MEMBER)
    assert answer.status_code == 404
    assert answer.json["itemNotFound"]["message"] == "There is no extension os-moon."


def test_one_more_was_in_the_first_version(api: ComputeApi) -> None:
    asked = {"headers": {"X-Auth-Token": auth.MEMBER}}
    path = "/extensions/OS-EXT-VIF-NET"
    assert api.raw("GET", f"/v2{path}", **asked).status_code == 200
    assert len(api.raw("GET", "/v2/extensions", **asked).json["extensions"]) == 100 + len(OWN)
    assert api.raw("GET", f"/v2.1{path}", **asked).status_code == 404


def test_our_measurements_say_so(api: ComputeApi) -> None:
    shown = api.get("/extensions/micronova-metrics", token=auth.MEMBER).json["extension"]
    assert shown in api.get("/extensions", token=auth.MEMBER).json["extensions"]
    assert shown["name"] == "Metrics"
    for name, body in (
        ("GET /extensions/{}", {"extension": shown}),
        ("GET /extensions", api.get("/extensions", token=auth.MEMBER).json),
    ):
        answers = responses.nova(name)
        assert answers is not None
        assert responses.differences(answers.rows[0][2], body) == []
    assert "/servers/{server_id}/metrics" in shown["description"]


def test_who_has_no_token_reads_nothing(api: ComputeApi) -> None:
    assert api.get("/extensions", token="").status_code == 401
