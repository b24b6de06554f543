"""Options that are given to `micronova up` by name."""

from __future__ import annotations

import pytest

from common.errors import ConfigurationError
from launcher.embedded.chosen import chosen
from launcher.embedded.settings import render
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


def test_an_option_that_a_file_may_have_several_times_has_all_its_lines() -> None:
    given = ["windows-*; os_type=windows", "debian-*; os_distro=debian", "a=b; c=$1"]
    found = chosen([f"images.properties={one}" for one in given])
    found |= chosen(["oslo_messaging_notifications.driver=messagingv2", "database.connection="])
    lines = render(made(settings(chosen=found))).splitlines()
    assert [one for one in lines if one.startswith("properties = ")] == [
        "properties = windows-*; os_type=windows",
        "properties = debian-*; os_distro=debian",
        "properties = a=b; c=$$1",
    ]
    assert "driver = messagingv2" in lines
    assert "connection = " in lines


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
