"""Key pairs: imported, generated, and of others."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.x509 import load_pem_x509_certificate

from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_keypair
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

ED25519 = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHsKLqeplhpW+uObz5dvMgjz1OxfM/XXUB+VHtZ6isGN me@laptop"
)


def test_import(api: ComputeApi) -> None:
    body = {"keypair": {"name": "mine", "public_key": ED25519}}
    made = api.request("POST", "/os-keypairs", body, version="2.92")
    assert made.status_code == 201
    assert made.json["keypair"] == {
        "name": "mine",
        "public_key": ED25519,
        "fingerprint": made.json["keypair"]["fingerprint"],
        "user_id": "demo",
        "type": "ssh",
    }
    assert len(made.json["keypair"]["fingerprint"].split(":")) == 16
    assert api.request("POST", "/os-keypairs", body, version="2.92").status_code == 409
    shown = api.get("/os-keypairs/mine", version="2.2").json["keypair"]
    assert shown["deleted"] is False
    assert shown["user_id"] == "demo"
    assert api.request("DELETE", "/os-keypairs/mine", version="2.2").status_code == 204
    assert api.request("DELETE", "/os-keypairs/mine").status_code == 404
    bad = {"keypair": {"name": "bad", "public_key": "ssh-rsa nonsense"}}
    answer = api.request("POST", "/os-keypairs", bad)
    assert answer.json["badRequest"]["message"] == (
        "Keypair data is invalid: failed to generate fingerprint"
    )


def test_generate(api: ComputeApi) -> None:
    made = api.request("POST", "/os-keypairs", {"keypair": {"name": "new"}})
    assert made.status_code == 200
    keypair = made.json["keypair"]
    key = serialization.load_pem_private_key(keypair["private_key"].encode(), None)
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    assert keypair["public_key"].startswith(public.decode())
    assert "private_key" not in str(api.get("/os-keypairs/new").json)
    body = {"keypair": {"name": "windows", "type": "x509"}}
    made = api.request("POST", "/os-keypairs", body, version="2.2")
    certificate = load_pem_x509_certificate(made.json["keypair"]["public_key"].encode())
    assert certificate.subject.rfc4514_string() == "CN=demo"
    assert "private_key" in made.json["keypair"]
    assert api.request("POST", "/os-keypairs", body, version="2.92").status_code == 400


def test_names(api: ComputeApi) -> None:
    body = {"keypair": {"name": "a@b.c", "public_key": ED25519}}
    assert api.request("POST", "/os-keypairs", body, version="2.91").status_code == 400
    assert api.request("POST", "/os-keypairs", body, version="2.92").status_code == 201


def test_of_others(make: MakeApi) -> None:
    api = make(a_keypair("theirs", "other"))
    path = "/os-keypairs?user_id=other"
    assert api.get(path, version="2.10").status_code == 403
    assert api.get(path, version="2.9").json["keypairs"][0]["keypair"]["name"] == "laptop"
    listed = api.get(path, version="2.10", token=auth.ADMIN).json["keypairs"]
    assert [item["keypair"]["name"] for item in listed] == ["theirs"]
    assert api.get("/os-keypairs/theirs").status_code == 404
    body = {"keypair": {"name": "for-them", "public_key": ED25519, "user_id": "other"}}
    assert api.request("POST", "/os-keypairs", body, version="2.10").status_code == 403
    made = api.request("POST", "/os-keypairs", body, version="2.10", token=auth.ADMIN)
    assert made.json["keypair"]["user_id"] == "other"
    gone = api.request(
        "DELETE", "/os-keypairs/theirs?user_id=other", version="2.10", token=auth.ADMIN
    )
    assert gone.status_code == 204


def test_pages(make: MakeApi) -> None:
    api = make(a_keypair("a"), a_keypair("b"))
    first = api.get("/os-keypairs?limit=2", version="2.35").json
    assert [item["keypair"]["name"] for item in first["keypairs"]] == ["a", "b"]
    assert first["keypairs_links"][0]["href"].endswith("/v2.1/os-keypairs?limit=2&marker=b")
    second = api.get("/os-keypairs?limit=2&marker=b", version="2.35").json
    assert [item["keypair"]["name"] for item in second["keypairs"]] == ["laptop"]
    assert "keypairs_links" not in second
    assert api.get("/os-keypairs?marker=nope", version="2.35").status_code == 400
    assert len(api.get("/os-keypairs?limit=1", version="2.34").json["keypairs"]) == 3
