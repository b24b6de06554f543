from __future__ import annotations

import pytest

from common.guest.settings import of_spec
from dashboard.pages.flavor import specs


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("hw:tpm_version", "TPM"),
        ("trait:CUSTOM_GPU", "Trait"),
        ("resources:VGPU", "Resources of a host"),
        ("aggregate_instance_extra_specs:disk", "Metadata of aggregates"),
        ("capabilities:hypervisor_version", "Capabilities of a host"),
        ("hw:numa_cpus.1", "Processors of a NUMA node"),
        ("hw:tpm", None),
        ("tier", None),
    ],
)
def test_an_extra_spec_is_explained_by_the_table(name: str, title: str | None) -> None:
    found = of_spec(name)
    assert (found.title if found else None) == title


def test_what_no_host_takes_says_why() -> None:
    given = {
        **{"tier": "gold", "hw:cpu_sockets": "2"},
        **{"hw:cpu_policy": "dedicated", "quota:cpu_shares": "9"},
    }
    policy, sockets, shares, tier = specs.explained(given)
    assert policy.refused.startswith("hw:cpu_policy=dedicated: guests can't be bound")
    assert (sockets.title, sockets.refused) == ("Sockets", "")
    assert shares.refused.startswith("quota:cpu_shares: ")
    assert (tier.name, tier.title, tier.refused) == ("tier", "", "")


def test_all_that_is_known_is_understood() -> None:
    known = specs.known()
    assert [one.spec for one in known] == sorted(one.spec for one in known)
    assert all(of_spec(one.spec) == one for one in known)
