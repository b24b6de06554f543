"""Which address a server may have when one is asked for."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from common.errors import Forbidden, Invalid
from conductor.store.networks import addresses
from conductor.store.networks.networks import parse_subnet


@dataclass(frozen=True)
class Subnet:
    cidr: str
    gateway_ip: str | None
    pool_start: str
    pool_end: str
    pools: None = None


FOUR = Subnet("10.0.0.0/24", "10.0.0.1", "10.0.0.50", "10.0.0.99")
SIX = Subnet("fd00::/64", "fd00::1", "fd00::100", "fd00::1ff")

NOT_VALID = r"is not a valid IP for any of the subnets on the specified network\."


@pytest.mark.parametrize(
    "asked",
    [
        *("10.0.0.0", "10.0.0.255", "10.0.1.50", "0.0.0.0", "255.255.255.255", "127.0.0.1"),
        *("fd00::", "fd01::100", "::ffff:10.0.0.60", "fd00::100%eth0", "fe80::1", "10.0.0.060"),
    ],
)
@pytest.mark.parametrize("anywhere", [False, True])
def test_what_no_server_can_have_nobody_is_given(asked: str, anywhere: bool) -> None:
    with pytest.raises(Invalid, match=NOT_VALID):
        addresses.chosen([FOUR, SIX], asked, anywhere=anywhere)


@pytest.mark.parametrize("asked", ["10.0.0.1", "fd00::1", "fd00:0:0:0::1"])
@pytest.mark.parametrize("anywhere", [False, True])
def test_the_routers_address_is_in_use(asked: str, anywhere: bool) -> None:
    with pytest.raises(Invalid, match=f"Fixed IP {asked} is already in use."):
        addresses.chosen([FOUR, SIX], asked, anywhere=anywhere)


@pytest.mark.parametrize(
    "asked", ["10.0.0.2", "10.0.0.49", "10.0.0.100", "fd00::ff", "fd00::200", "fd00::ffff"]
)
def test_outside_of_the_pool_only_who_may_chooses(asked: str) -> None:
    with pytest.raises(Forbidden, match="create_port:fixed_ips:ip_address"):
        addresses.chosen([FOUR, SIX], asked, anywhere=False)
    assert addresses.chosen([FOUR, SIX], asked, anywhere=True)[1] == asked


def test_within_the_pool_anybody_chooses_and_one_address_has_one_text() -> None:
    assert addresses.chosen([FOUR, SIX], "10.0.0.50", anywhere=False) == (FOUR, "10.0.0.50")
    assert addresses.chosen([FOUR, SIX], "10.0.0.99", anywhere=False) == (FOUR, "10.0.0.99")
    long = "FD00:0000:0000:0000:0000:0000:0000:0101"
    assert addresses.chosen([FOUR, SIX], long, anywhere=False) == (SIX, "fd00::101")


@pytest.mark.parametrize(
    "pool",
    ["10.0.0.0-10.0.0.9", "10.0.0.9-10.0.0.255", "10.0.0.9-10.0.0.2"],
)
def test_a_configured_pool_gives_nothing_out_that_no_server_can_have(pool: str) -> None:
    with pytest.raises(Invalid, match="the pool must begin and end"):
        parse_subnet(f"vmbr0=10.0.0.0/24;pool={pool}")
    assert parse_subnet("vmbr0=10.0.0.0/24;pool=10.0.0.2-10.0.0.254").last == "10.0.0.254"
