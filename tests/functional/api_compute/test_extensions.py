"""What Nova's clients ask of extensions."""

from __future__ import annotations

import pytest

from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi

pytestmark = pytest.mark.database


@pytest.mark.parametrize("version", ["2.1", "2.102"])
def test_what_is_here_is_listed_by_alias(api: ComputeApi, version: str) -> None:
    answer = api.get("/extensions", version=version, token=auth.MEMBER)
    assert answer.status_code == 200
    listed = answer.json["extensions"]
    aliases = [one["alias"] for one in listed]
    assert aliases == sorted(aliases)
    assert {"os-keypairs", "os-aggregates", "OS-EXT-STS"} < set(aliases)
    assert not {"os-shelve", "os-volumes", "os-rescue"} & set(aliases)
    fields = ["alias", "description", "links", "name", "namespace", "updated"]
    assert all(sorted(one) == fields for one in listed)


def test_one(api: ComputeApi) -> None:
    shown = api.get("/extensions/OS-EXT-STS", token=auth.MEMBER).json["extension"]
    assert shown in api.get("/extensions", token=auth.MEMBER).json["extensions"]
    assert (shown["alias"], shown["name"], shown["links"]) == ("OS-EXT-STS", "ExtendedStatus", [])
    answer = api.get("/extensions/os-shelve", token=auth.MEMBER)
    assert answer.status_code == 404
    assert answer.json["itemNotFound"]["message"] == "There is no extension os-shelve."


def test_who_has_no_token_reads_nothing(api: ComputeApi) -> None:
    assert api.get("/extensions", token="").status_code == 401
