"""Host names made of servers' names, as Nova 34 makes them."""

from __future__ import annotations

import pytest

from conductor.servers.create.begin_create import hostname_of

UUID = "0f0f0f0f-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    ("name", "hostname"),
    [
        ("node.1", "node-1"),
        ("node.2", "node-2"),
        ("web.example.com", "web-example-com"),
        ("windows-server.2012", "windows-server-2012"),
        ("UPPER.Case_Name", "upper-case-name"),
        (" lead", "lead"),
        ("trail ", "trail"),
        ("a/b\\c", "abc"),
        ("a\tb", "ab"),
        ("ß", "ß"),
        ("e\u0301", "e"),
        ("名前", f"Server-{UUID}"),
        ("...", f"Server-{UUID}"),
        ("-dash-", "dash"),
        ("a" * 255, "a" * 63),
        ("a" * 62 + ".b", "a" * 62),
    ],
)
def test_a_name_becomes_a_host_name(name: str, hostname: str) -> None:
    assert hostname_of(name, UUID) == hostname
