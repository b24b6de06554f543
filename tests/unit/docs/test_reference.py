"""The API reference: documents that are OpenAPI, of all that the tables have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from api.clustering import routes as clustering
from api.compute import routes as compute
from api.volume import routes as volume
from benchmarks.fuzz import surface
from placement import routes as placement
from release import openapi, reference_pages, references
from web.protected import served_by

_START = "POST /servers/{server_id}/action"
_NOVA = "https://docs.openstack.org/api-ref/compute/"


@pytest.fixture(scope="module")
def documents() -> dict[str, Any]:
    """All documents, as they are read from JSON."""
    return {name: json.loads(openapi.text(name)) for name in openapi.APIS}


@pytest.mark.parametrize("name", openapi.APIS)
def test_a_document_is_openapi(documents: dict[str, Any], name: str) -> None:
    assert [str(error) for error in OpenAPIV31SpecValidator(documents[name]).iter_errors()] == []


def calls(document: Any) -> set[tuple[str, str]]:
    return {
        (method.upper(), path) for path, found in document["paths"].items() for method in found
    }


def test_documents_have_all_that_is_served(documents: dict[str, Any]) -> None:
    tables: dict[str, Any] = {
        "compute": (one for row in compute.ROUTES for one in row.served()),
        "volume": volume.served(),
        "clustering": clustering.served(),
        "placement": served_by(placement.ROUTES.items()),
    }
    for name, served in tables.items():
        assert calls(documents[name]) == {(method, path) for method, path, _ in served}
    for name in ("image", "network"):
        fuzzed = {
            (one.method, one.path.removeprefix(f"/{name}"))
            for one in surface.targets()
            if one.api == name
        }
        assert fuzzed <= calls(documents[name])


def test_an_operation_says_what_protects_it_and_where_nova_describes_it(
    documents: dict[str, Any],
) -> None:
    found = documents["compute"]["paths"]["/flavors/{flavor_id}"]["get"]
    assert found["summary"]
    assert found["x-openstack"] == [{"min-ver": "2.1", "max-ver": newest(documents)}]
    assert found["externalDocs"]["url"] == f"{_NOVA}#show-flavor-details"
    assert [one["name"] for one in found["parameters"] if one["in"] == "path"] == ["flavor_id"]
    listing = documents["compute"]["paths"]["/servers"]["get"]
    assert listing["x-policy"] == [
        "os_compute_api:servers:allow_all_filters",
        "os_compute_api:servers:index",
    ]
    assert "changes-since" in {one["name"] for one in listing["parameters"]}


def newest(documents: dict[str, Any]) -> str:
    return str(documents["compute"]["info"]["version"])


def test_each_action_has_its_body_rule_and_versions(documents: dict[str, Any]) -> None:
    found = documents["compute"]["paths"]["/servers/{server_id}/action"]["post"]
    bodies = found["requestBody"]["content"]["application/json"]["schema"]["anyOf"]
    assert {one["title"] for one in bodies} == {
        action
        for row in compute.ROUTES
        if row.path == "/servers/{server_id}/action"
        for action in row.acting()
    }
    [start] = [one for one in bodies if one["title"] == "os-start"]
    assert start["x-policy"] == ["os_compute_api:servers:start"]
    assert start["x-openstack"]["action-name"] == "os-start"
    assert start["externalDocs"]["url"] == f"{_NOVA}#start-server-os-start-action"
    assert "externalDocs" not in found
    rebuilds = [one["x-openstack"]["min-ver"] for one in bodies if one["title"] == "rebuild"]
    assert rebuilds[0] == "2.1" and len(set(rebuilds)) == len(rebuilds) > 1


def test_what_is_our_own_has_no_link() -> None:
    found = {(one.method, one.path, one.action): one.link for one in openapi.described("compute")}
    assert found["GET", "/capacity", ""] is None
    assert found["GET", "/servers/{server_id}/metrics", ""] is None
    path = "/servers/{server_id}/action"
    assert found["POST", path, "hold"] is None
    assert found["POST", path, "os-start"] == f"{_NOVA}#start-server-os-start-action"
    assert references.link("network", "PUT", "/v2.0/ports/{id}/tags/{tag}") is not None


def test_a_page_has_a_line_for_each_call() -> None:
    page = reference_pages.page("compute")
    every = list(openapi.described("compute"))
    assert page.count("\n| ") - page.count("\n| call ") == len(every)
    assert (
        f"| [`{_START}` `os-start`]({_NOVA}#start-server-os-start-action) | 2.1 – "
        f"{every[0].versions[1] if every[0].versions else ''} | " in page
    )
    assert "versions" not in reference_pages.page("image").partition("\n| call ")[2].split("\n")[0]


def test_a_reference_is_read_from_its_sources(tmp_path: Path) -> None:
    (tmp_path / "index.rst").write_text(".. include:: a.inc\n", encoding="utf-8")
    (tmp_path / "a.inc").write_text(
        """
Things
======

List Things
-----------

.. rest_method::  GET /v3/{project_id}/things

Grow a Thing (grow Action)
--------------------------

.. rest_method:: POST /v3/{project_id}/things/{thing_id}/action

Shrink a thing
--------------

.. rest_method:: POST /v3/{project_id}/things/{thing_id}/action

Request
.......

.. rest_parameters:: parameters.yaml

   - thing_id: thing_id_path
   - os-shrink: size
""",
        encoding="utf-8",
    )
    assert references.read(tmp_path, "x/") == {
        "GET /things": "x/#list-things",
        "POST /things/{}/action": "x/#shrink-a-thing",
        "POST /things/{}/action grow": "x/#grow-a-thing-grow-action",
        "POST /things/{}/action os-shrink": "x/#shrink-a-thing",
    }


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (("GET", "/v2.0/ports/{record_id}"), "GET /ports/{}"),
        (("GET", "/v3/{admin_project_id}/os-hosts"), "GET /os-hosts"),
        (("GET", "/v2.0/quotas/{project_id}/details.json"), "GET /quotas/{}/details"),
        (("GET", "/"), "GET /"),
        (("POST", "/servers/{id}/action", "os-start"), "POST /servers/{}/action os-start"),
    ],
)
def test_calls_have_one_name(call: tuple[str, ...], name: str) -> None:
    assert references.key(*call) == name
