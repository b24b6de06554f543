"""Options that are given to `micronova up` by name."""

from __future__ import annotations

import pytest

from common.errors import ConfigurationError
from launcher.embedded.chosen import chosen
from tests.unit.launcher.embedded.test_settings import made, settings


def test_they_replace_what_is_made_up() -> None:
    found = chosen(
        [
            *("conductor.scan_seconds=3", "conductor.reclaim_instance_interval=60"),
            *("conductor.scan_seconds=2", "DEFAULT.debug=true", "quota.cores=-1"),
            *(
                "seed.flavors=1:small:1:512:1,2:large:4:8192:80",
                "proxmox:pve.a.linked_clones=never",
            ),
        ]
    )
    assert found["conductor"] == {"scan_seconds": "2", "reclaim_instance_interval": "60"}
    assert chosen(["embedded_identity.login_failures=0"]) == {
        "embedded_identity": {"login_failures": "0"}
    }
    assert found["proxmox:pve.a"] == {"linked_clones": "never"}
    written = made(settings(chosen=found), {"conductor": {"scan_seconds": "9"}})
    assert written["conductor"] == {"name": "embedded", **found["conductor"]}
    assert written["seed"] == found["seed"]
    assert written["DEFAULT"] == {"transport_url": "micronova-local://embedded", "debug": "true"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("reclaim_instance_interval=5", "it is not <group>.<option>=<value>"),
        ("conductor.scan_seconds", "it is not <group>.<option>=<value>"),
        ("conductor.scan_seconds=1\n[database]", "it is not <group>.<option>=<value>"),
        ("conductor.scan_second=5", "there is no such option"),
        ("embedded_identity.threads=0", "Should be greater than or equal to 1"),
        ("conducto.scan_seconds=5", "there is no such option"),
        ("proxmox:sim1.nothing=5", "there is no such option"),
        ("conductor.reclaim_instance_interval=soon", "soon"),
        ("conductor.reclaim_instance_interval=-1", "Should be greater than or equal to 0"),
        ("proxmox:sim1.linked_clones=perhaps", "perhaps"),
    ],
)
def test_what_is_no_option(given: str, why: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        chosen([given])
    assert refused.value.message.startswith(f"--set {given}: ")
    assert why in refused.value.message
