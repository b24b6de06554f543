"""The volume commands of the unmodified `openstack`, at several microversions."""

from __future__ import annotations

import pytest

from tests.compat.conftest import Client
from tests.compat.test_openstack_volumes import becomes
from tests.functional.waiting import eventually

#: (from which microversion on, command)
_LOOKS = (
    (0, "volume list --long"),
    (0, "volume list --status available --property a=b --limit 1"),
    (0, "volume snapshot list --long --status available"),
    (0, "volume type list --long --public"),
    (0, "volume type list --private"),
    (0, "volume type list --encryption-type"),
    (0, "volume qos list"),
    (0, "volume service list --long"),
    (0, "volume backend pool list --long"),
    (0, "volume backend capability show {host}"),
    (0, "volume backup list --long"),
    (0, "volume transfer request list"),
    (0, "consistency group list --long"),
    (0, "availability zone list --volume"),
    (3, "volume message list"),
    (7, "block storage cluster list"),
    (11, "volume group type list"),
    (12, "volume summary"),
    (13, "volume group list"),
    (14, "volume group snapshot list"),
    (27, "volume attachment list --status attached"),
    (33, "block storage resource filter list"),
    (33, "block storage resource filter show snapshot"),
    (52, "volume type list --multiattach"),
)


@pytest.mark.long
def test_what_there_is_at_several_versions(client: Client, host: str) -> None:
    """Each command once, at one of the versions that it is for."""
    for turn, (since, words) in enumerate(_LOOKS):
        versions = [one for one in (0, 27, 44, 71) if one >= since]
        version = versions[turn % len(versions)]
        client.ask("--os-volume-api-version", f"3.{version}", *words.format(host=host).split())
    assert client.names("extension", "list", "--volume") >= {"AvailabilityZones", "Quotas"}
    absolute = client.ask("limits", "show", "--absolute", "--project", "demo")
    assert {one["Name"]: one["Value"] for one in absolute}["max_total_volumes"] == 10
    for turn in ("disable", "enable"):
        client.do("volume", "service", "set", f"--{turn}", host, "cinder-volume")
        services = client.ask("volume", "service", "list", "--service", "cinder-volume")
        found = {one["Status"] for one in services if one["Host"].partition("@")[0] == host}
        assert found == {f"{turn}d"}
    for words in (
        ("volume", "host", "set", "--disable", host),
        ("volume", "qos", "create", "fast"),
        ("block", "storage", "log", "level", "set", "DEBUG"),
    ):
        refused = client.run(*words)
        assert refused.returncode == 1, words
        assert "400" in refused.stderr, words


@pytest.mark.long
def test_set_and_unset(client: Client, volume_type: str, name: str) -> None:
    words = ("--property", "a=b", "--property", "c=d", "--availability-zone", "nova")
    client.ask("volume", "create", "--size", "1", "--type", volume_type, *words, name)
    try:
        becomes(client, name, "available")
        client.do(
            *("volume", "set", "--property", "x=y", "--image-property", "os=linux", "--bootable"),
            *("--description", "data", name),
        )
        client.do("volume", "unset", "--property", "a", "--property", "c", name)
        shown = client.ask("volume", "show", name)
        assert (shown["properties"], shown["bootable"]) == ({"x": "y"}, True)
        assert shown["volume_image_metadata"] == {"os": "linux"}
        client.do("volume", "unset", "--image-property", "os", name)
        client.do("volume", "set", "--non-bootable", "--no-property", name)
        client.do("volume", "set", "--state", "error", name)
        assert name in client.names("volume", "list", "--status", "error")
        client.do("volume", "set", "--state", "available", name)
        client.ask("volume", "snapshot", "create", "--volume", name, f"{name}-1")
        shot = ("volume", "snapshot", "show", f"{name}-1")
        eventually(lambda: client.ask(*shot)["status"] == "available", 30, 0.2)
        client.do("volume", "snapshot", "set", "--property", "a=b", f"{name}-1")
        client.do("volume", "snapshot", "unset", "--property", "a", f"{name}-1")
        client.do("volume", "snapshot", "set", "--state", "error", f"{name}-1")
        client.do("volume", "snapshot", "delete", "--force", f"{name}-1")
        eventually(lambda: client.run(*shot).returncode == 1, 30, 0.2)
    finally:
        client.do("volume", "delete", "--force", name)
    eventually(lambda: client.run("volume", "show", name).returncode == 1, 30, 0.2)


def test_refusals(client: Client) -> None:
    for words, why in (
        (("--size", "0"), "400"),
        (("--size", "1", "--type", "nothing"), "Volume type nothing could not be found"),
        (("--size", "1", "--availability-zone", "moon"), "Availability zone 'moon' is invalid."),
        (("--size", "2000"), "413"),
    ):
        refused = client.run("volume", "create", *words, "never")
        assert (refused.returncode, why in refused.stderr) == (1, True), refused.stderr
    assert "never" not in client.names("volume", "list")


def test_quotas_of_the_class(client: Client) -> None:
    client.do("quota", "set", "--default", "--volumes", "11")
    try:
        shown = client.ask("quota", "show", "--default", "--volume")
        assert {one["Resource"]: one["Limit"] for one in shown}["volumes"] == 11
    finally:
        client.do("quota", "set", "--default", "--volumes", "10")


def test_attachments(client: Client, server: str, name: str) -> None:
    client.ask("volume", "create", "--size", "1", "--hint", f"local_to_instance={server}", name)
    becomes(client, name, "available")
    try:
        client.do("server", "add", "volume", "--tag", "data", server, name)
        becomes(client, name, "in-use")
        (listed,) = client.ask("volume", "attachment", "list", "--status", "attached")
        assert client.ask("volume", "attachment", "list", "--status", "reserved") == []
        for version in ("3.27", "3.44", "3.71"):
            shown = client.ask(
                *("--os-volume-api-version", version),
                *("volume", "attachment", "show", listed["ID"]),
            )
            assert (shown["Instance ID"], shown["Status"]) == (server, "attached")
        for words, status in (
            (("complete", listed["ID"]), "400"),
            (("delete", listed["ID"]), "409"),
            (("create", name, server), "400"),
        ):
            refused = client.run("volume", "attachment", *words)
            assert (refused.returncode, status in refused.stderr) == (1, True), refused.stderr
        client.do("volume", "set", "--size", "2", name)
        becomes(client, name, "in-use")
        assert client.ask("volume", "show", name)["size"] == 2
    finally:
        client.do("server", "remove", "volume", server, name)
        becomes(client, name, "available")
        client.do("volume", "delete", name)


@pytest.mark.long
def test_transfers(client: Client, admin: Client, name: str) -> None:
    """A volume is given to the administrator's project, and back; a request may be taken back."""
    words = ("volume", "transfer", "request")
    made = client.ask("volume", "create", "--size", "1", name)
    becomes(client, name, "available")
    try:
        offered = client.ask(*words, "create", "--name", f"{name}-offer", name)
        assert (offered["name"], offered["volume_id"]) == (f"{name}-offer", made["id"])
        becomes(client, name, "awaiting-transfer")
        assert f"{name}-offer" in client.names(*words, "list")
        assert client.ask(*words, "show", offered["id"])["volume_id"] == made["id"]
        client.do(*words, "delete", offered["id"])
        becomes(client, name, "available")
        for giver, taker in ((client, admin), (admin, client)):
            offered = giver.ask(*words, "create", made["id"])
            wrong = taker.run(*words, "accept", "--auth-key", "wrong", offered["id"])
            assert (wrong.returncode, "400" in wrong.stderr) == (1, True), wrong.stderr
            key = ("--auth-key", offered["auth_key"])
            assert taker.ask(*words, "accept", *key, offered["id"])["volume_id"] == made["id"]
            becomes(taker, made["id"], "available")
            assert name in taker.names("volume", "list")
            assert name not in giver.names("volume", "list")
    finally:
        client.run(*words, "delete", f"{name}-offer")
        for one in (client, admin):
            one.run("volume", "delete", made["id"])
    eventually(lambda: client.run("volume", "show", made["id"]).returncode == 1, 30, 0.2)
