from __future__ import annotations

import ipaddress

import pytest

from api.image.data import addresses
from api.image.data.addresses import Origin, Source
from common.errors import Invalid

ALLOWED = [
    addresses.parse_pattern(one)
    for one in ("https://cloud.debian.org", "https://*.example.org:8443", "http://10.0.0.5")
]


@pytest.mark.parametrize(
    ("uri", "target"),
    [
        ("https://cloud.debian.org/a/b.qcow2?x=1", "/a/b.qcow2?x=1"),
        ("https://CLOUD.debian.org", "/"),
        ("https://cloud.debian.org:443/a#part", "/a"),
        ("https://a.example.org:8443/a", "/a"),
        ("http://10.0.0.5/a", "/a"),
    ],
)
def test_what_the_operator_allows(uri: str, target: str) -> None:
    assert addresses.source(uri, ALLOWED).target == target


def test_the_connection_goes_to_the_host_that_was_named() -> None:
    found = addresses.source("https://cloud.debian.org./a", ALLOWED)
    assert found == Source(Origin("https", "cloud.debian.org", 443), "/a")


@pytest.mark.parametrize(
    "uri",
    [
        *("", "x", "None", "/etc/passwd", "file:///etc/passwd", "ftp://cloud.debian.org/a"),
        *("http://cloud.debian.org/a", "https://cloud.debian.org:22/a", "https:///a"),
        *("https://example.org:8443/a", "https://a.example.org/a", "https://evil.org/a"),
        *("https://user@cloud.debian.org/a", "https://user:pw@cloud.debian.org/a"),
        *("https://cloud.debian.org@evil.org/a", "https://evil.org/?cloud.debian.org"),
        *("https://cloud.debian.org\\@evil.org/", "https://cloud.debian.org:x/", "https://[::1/a"),
        *(
            "https://cloud.debian.org/a b",
            "https://cloud.debian.org/\r\nX: 1",
            "https://clöud.org",
        ),
        *("http://0x0a000005/", "http://10.0.0.5%00.debian.org/", f"http://10.0.0.5/{'a' * 2048}"),
    ],
)
def test_what_nobody_allowed(uri: str) -> None:
    with pytest.raises(Invalid, match="does not pass filtering"):
        addresses.source(uri, ALLOWED)


@pytest.mark.parametrize("text", ["cloud.debian.org", "ftp://a", "https://", "https://a/b"])
def test_a_pattern_is_a_scheme_and_a_host(text: str) -> None:
    with pytest.raises(ValueError, match="form"):
        addresses.parse_pattern(text)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.0.1", "169.254.169.254", "0.0.0.0"),
        *("100.64.0.1", "224.0.0.1", "255.255.255.255", "198.18.0.1", "192.0.0.1"),
        *("::", "::1", "fe80::1", "fc00::1", "ff02::1", "::ffff:10.0.0.1", "::ffff:8.8.8.8"),
        *("::127.0.0.1", "64:ff9b:1::1", "fec0::1", "100::1", "2001:db8::1", "::ffff:0:127.0.0.1"),
        *("2002:0a00:0001::1", "64:ff9b::0a00:0001", "2001:0:1234::1", "fe80::1%eth0", "x"),
    ],
)
def test_addresses_inside_are_closed(address: str) -> None:
    assert not addresses.is_open(address, [])


def test_addresses_of_the_internet_are_open_and_so_are_those_allowed() -> None:
    assert addresses.is_open("151.101.2.132", [])
    assert addresses.is_open("2a04:4e42::644", [])
    inside = [ipaddress.ip_network("10.20.0.0/16"), ipaddress.ip_network("fd00::/8")]
    assert addresses.is_open("10.20.1.1", inside)
    assert addresses.is_open("fd00::1", inside)
    assert not addresses.is_open("10.21.1.1", inside)


def test_a_host_without_an_open_address_is_refused() -> None:
    with pytest.raises(Invalid, match="may not be connected to"):
        addresses.resolve(Origin("http", "localhost", 80), [])
    with pytest.raises(Invalid, match="has no address"):
        addresses.resolve(Origin("http", "nowhere.invalid", 80), [])
    local = [ipaddress.ip_network("127.0.0.0/8")]
    assert addresses.resolve(Origin("http", "localhost", 80), local) == ["127.0.0.1"]
