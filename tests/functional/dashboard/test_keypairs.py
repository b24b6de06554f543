"""Key pairs: made, imported, refused and deleted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

import pytest

from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.browser import Browser

KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiI"
PUBLIC = f"ssh-ed25519 {KEY} me@example.org"


@pytest.fixture(autouse=True)
def no_keypairs(three_nodes: EmbeddedCloud) -> Iterator[None]:
    """Delete the users' key pairs after a test."""
    yield
    for cloud in ("micronova-demo", "micronova-reader", "micronova-admin"):
        compute = three_nodes.connection(cloud).compute
        for one in compute.keypairs():
            compute.delete_keypair(one)


def test_a_private_key_is_shown_once(member: Browser, reader: Browser) -> None:
    assert "No key pairs." in member.get("/keypairs").text
    page = member.submit("/keypairs", name="laptop 1")
    assert "is stored nowhere: save it now." in page.text
    key = re.search(
        r"<pre[^>]*>(-----BEGIN .*?-----END [A-Z ]+-----)", member.page.text, re.DOTALL
    )
    assert key is not None
    [data] = [one for one in page.links if one.startswith("data:")]
    assert unquote(data.partition(",")[2]).startswith(key[1])
    assert 'download="laptop 1.pem"' in member.page.text
    text = member.get("/keypairs").text
    assert "laptop 1" in text
    assert "PRIVATE KEY" not in member.page.text
    assert "laptop 1" not in reader.get("/keypairs").text, "it is another user's"


def test_a_public_key_is_imported_and_deleted_after_a_page_that_asks(
    member: Browser, three_nodes: EmbeddedCloud
) -> None:
    member.get("/keypairs")
    assert (
        "The key own is imported."
        in member.submit("/keypairs", name="own", public_key=PUBLIC).text
    )
    assert PUBLIC in member.page.text
    page = member.get("/keypairs/delete?name=own")
    assert "Delete the key pair own?" in page.text
    assert member.form("/keypairs/delete").fields["name"] == "own"
    assert [one.name for one in three_nodes.connection().compute.keypairs()] == ["own"]
    assert "The key pair is deleted." in member.submit("/keypairs/delete").text
    assert "No key pairs." in member.parsed.text


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"name": "a/b"}, "Invalid input for field/attribute name"),
        ({"name": ""}, "Invalid input for field/attribute name"),
        ({"name": "x", "public_key": "no key"}, "Keypair data is invalid"),
        ({"name": "y" * 256, "public_key": PUBLIC}, "Invalid input for field/attribute name"),
    ],
)
def test_what_is_refused_is_in_the_form_still(
    member: Browser, fields: dict[str, str], sentence: str
) -> None:
    member.get("/keypairs")
    assert sentence in member.submit("/keypairs", **fields).text
    assert member.status == 400
    assert "No key pairs." in member.parsed.text
    given = member.form("/keypairs").fields
    assert given["public_key"] == fields.get("public_key", "")


def test_a_name_that_exists_and_one_that_does_not(member: Browser) -> None:
    member.get("/keypairs")
    member.submit("/keypairs", name="own", public_key=PUBLIC)
    assert "already exists" in member.submit("/keypairs", name="own", public_key=PUBLIC).text
    assert member.status == 409
    for odd in ("nobody", "", "..", "a/b"):
        member.get("/keypairs/delete", params={"name": odd})
        assert member.status == 404, odd
    gone = {"csrf": member.csrf, "name": "nobody"}
    assert "Refused: Keypair nobody not found" in member.post("/keypairs/delete", gone).text


def test_they_come_in_pages(member: Browser) -> None:
    for name in ("one", "two"):
        member.get("/keypairs")
        member.submit("/keypairs", name=name, public_key=PUBLIC)
    found = member.get("/keypairs?limit=1")
    [following] = [one for one in found.links if "marker=" in one]
    assert "two" in member.get(following.removeprefix("/dashboard")).text


def test_a_reader_may_look_alone(reader: Browser) -> None:
    reader.get("/keypairs")
    assert not reader.has_form("/keypairs")
    reader.post("/keypairs", {"csrf": reader.csrf, "name": "mine"})
    assert reader.status == 403
    reader.get("/keypairs/delete?name=mine")
    assert reader.status == 403
