"""Parameters, property strings, sizes, volumes, permissions and orders: the pure parts."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from simulator.errors import PveError
from simulator.http.routes import ROUTES, Router
from simulator.qemu.create import default_boot, unique_tags
from simulator.qemu.drives import check_syntax, parse_drive
from simulator.qemu.network import parse_net, with_mac
from simulator.request import permissions
from simulator.request.apischema import Rule, methods, parameters
from simulator.request.params import complaint, validate
from simulator.request.vmschema import is_option, typed
from simulator.state import disks
from simulator.state.access import Access, Grant, Identity, Token, User
from simulator.state.faults import BadOrder, Faults
from simulator.state.model import Storage, Vm, Volume
from simulator.state.roles import ROLES, roles_of
from simulator.state.volumes import VolumeStore, parse_volid


def test_the_digest_is_the_checksum_of_the_file() -> None:
    shell = Vm(100, "pve1", {"lock": "create"})
    assert shell.digest() == hashlib.sha1(b"lock: create\n").hexdigest()
    assert shell.digest() == "a7e9f8c42935261b36fcd1d7d6cd8cd41648da49"


@pytest.mark.parametrize(
    ("size", "text"),
    [(1 << 30, "1G"), (96 << 20, "96M"), (528 << 10, "528K"), (512, "512"), (3 << 29, "1536M")],
)
def test_sizes(size: int, text: str) -> None:
    assert disks.print_size(size) == text
    assert disks.parse_size(text) == size


def test_a_card_keeps_its_address_or_gets_one() -> None:
    assert with_mac("virtio=bc:24:11:00:00:01,bridge=vmbr0", "BC:24:11") == (
        "virtio=BC:24:11:00:00:01,bridge=vmbr0"
    )
    assert parse_net(with_mac("e1000,bridge=vmbr1", "BC:24:11"))["macaddr"].startswith("BC:24:11")


def test_property_strings_are_checked_in_the_servers_words() -> None:
    rule = parameters(methods()["/nodes/{node}/qemu"]["POST"])["net0"]
    assert complaint("net0", "virtio,bridge=vmbr0", rule) is None
    assert complaint("net0", "virtio=BC:24:11:00:00:01,bridge=vmbr0", rule) is None
    assert complaint("net0", "bridge=vmbr0", rule) == (
        "invalid format - format error\nnet0.model: property is missing and it is not optional\n"
    )


def test_values_come_back_as_numbers_or_strings() -> None:
    shown = typed({"cores": "2", "memory": "512", "kvm": "0", "agent": "1", "cpulimit": "0.5"})
    assert shown == {"cores": 2, "memory": "512", "kvm": 0, "agent": "1", "cpulimit": 0.5}


def test_unknown_missing_and_wrong_parameters() -> None:
    rules = {"vmid": {"type": "integer"}, "full": {"type": "boolean", "optional": 1}}
    with pytest.raises(PveError) as caught:
        validate(rules, {"full": "yes", "bogus": "1"})
    assert caught.value.status == 400
    assert set(caught.value.errors or {}) == {"full", "bogus", "vmid"}


@pytest.mark.parametrize(
    ("rule", "value", "says"),
    [
        ({"type": "integer"}, "x", "type check"),
        ({"type": "integer", "minimum": "2"}, "1", "minimum value of 2"),
        ({"type": "number", "maximum": 2}, "2.5", "maximum value of 2"),
        ({"type": "string", "minLength": 2}, "a", "at least 2 characters"),
        ({"type": "string", "maxLength": 2}, "abc", "only be 2 characters"),
        ({"type": "string", "enum": ["a", "b"]}, "c", "enumeration 'a, b'"),
        ({"type": "string", "pattern": "(?^i:a+)"}, "ab", "regex pattern"),
        ({"type": "string", "format": "pve-node"}, "a.b", "valid node name"),
    ],
)
def test_each_keyword_of_the_schema_refuses(rule: Rule, value: str, says: str) -> None:
    assert says in (complaint("x", value, rule) or "")


def test_options_have_bounds() -> None:
    assert is_option("scsi30")
    assert not is_option("scsi31")
    assert not is_option("digest")


def test_drives() -> None:
    assert parse_drive("scsi0", "local:5").new == ("local", 5.0)
    assert parse_drive("ide2", "local:cloudinit").cloudinit
    assert parse_drive("scsi0", "local:0,import-from=local:import/x.qcow2,ssd=1").text() == (
        "local:0,ssd=1"
    )
    with pytest.raises(PveError, match="verification failed"):
        check_syntax({"ide2": "local:iso/x.iso"})


def test_boot_order_and_tags() -> None:
    assert default_boot({"scsi0": "local:1", "net0": "virtio"}) == "order=scsi0;net0"
    assert default_boot({}) == " "
    assert unique_tags("b,a;B c") == "a;b;c"


def test_an_orphans_number_is_skipped() -> None:
    store = VolumeStore()
    place = ("local", "pve1")
    storage = Storage("local", "dir", "/var/lib/vz", ["images"], False, 1 << 40)
    assert store.free_name(storage, "pve1", 100, "raw") == "100/vm-100-disk-0.raw"
    base = Volume(*place, "100/base-100-disk-0.raw", "images", "raw", 1, 1, 100)
    store.add(base)
    assert store.free_name(storage, "pve1", 100, "qcow2") == "100/vm-100-disk-1.qcow2"
    clone = Volume(*place, "101/vm-101-disk-0.qcow2", "images", "qcow2", 1, 1, 101, base.name)
    store.add(clone)
    assert clone.volid == "local:100/base-100-disk-0.raw/101/vm-101-disk-0.qcow2"
    assert store.get(place, parse_volid(clone.volid).name) is clone
    assert store.children(base) == [clone.name]
    assert store.used(place) == 2
    store.remove(clone)
    assert store.children(base) == []


def test_privileges_of_users_tokens_and_pools() -> None:
    access = Access(dict(ROLES), b"key")
    tokens = {"a": Token("a", "s", privsep=False), "b": Token("b", "s", privsep=True)}
    access.users["u@pve"] = User("u@pve", tokens=tokens)
    access.grants = [
        Grant("/vms", "u@pve", "user", "PVEVMAdmin"),
        Grant("/vms/101", "u@pve", "user", "PVEAuditor"),
        Grant("/pool/p", "u@pve", "user", "PVEVMUser"),
        Grant("/vms", "u@pve!b", "token", "PVEAuditor"),
    ]
    user, same, separate = Identity("u@pve"), Identity("u@pve", "a"), Identity("u@pve", "b")
    assert access.has(user, "/vms/100", "VM.Allocate")
    assert not access.has(user, "/vms/101", "VM.Allocate")
    assert access.has(same, "/vms/100", "VM.Allocate")
    assert access.privileges(separate, "/vms/100") == {"VM.Audit", "VM.GuestAgent.Audit"}
    access.pool_of[101] = "p"
    access.changed()
    assert access.has(user, "/vms/101", "VM.PowerMgmt")
    assert not Identity("root@pam", "x").root


def test_orders() -> None:
    faults = Faults()
    faults.add({"leak": "L3", "vmid": 100, "nth": 2})
    assert not faults.leak("L3", "pve1", 101)
    assert not faults.leak("L3", "pve1", 100)
    assert faults.leak("L3", "pve1", 100)
    assert not faults.leak("L3", "pve1", 100)
    with pytest.raises(BadOrder, match="regular expression"):
        faults.add({"action": "fail", "path": "("})
    with pytest.raises(BadOrder, match="unknown field"):
        faults.add({"action": "fail", "colour": "red"})


def test_a_volume_id_may_hold_slashes_and_routes_are_found() -> None:
    router = Router(ROUTES)
    found = router.find("DELETE", "/nodes/pve1/storage/local/content/local:100/vm-100-disk-0.raw")
    assert found is not None
    assert found[1]["volume"] == "local:100/vm-100-disk-0.raw"
    assert router.find("GET", "/foo/bar") is None
    assert router.find("POST", "/nodes/pve1/qemu/100/importdisk") is None


def test_a_reason_phrase_is_one_line() -> None:
    assert PveError("one\r\nSet-Cookie: two\n").reason == "one"


MAPPED = [["perm", "/mapping/dir/{id}", [name]] for name in ("Mapping.Use", "Mapping.Audit")]


@pytest.mark.parametrize(
    ("check", "granted", "refusal"),
    [
        (["perm", "/vms/{vmid}", ["VM.Audit"]], {"/vms": {"VM.Audit"}}, None),
        (
            ["perm", "/", ["Sys.Audit", "Sys.Modify"]],
            {"/": {"Sys.Audit"}},
            "Permission check failed (/, Sys.Modify)",
        ),
        (["perm", "/", ["Sys.Audit", "Sys.Modify"], "any", 1], {"/": {"Sys.Audit"}}, None),
        (
            ["perm", "/vms/{vmid}", ["VM.Console", "VM.Clone"], "any", 1],
            {},
            "Permission check failed (/vms/7, VM.Console|VM.Clone)",
        ),
        (
            ["and", ["perm", "/vms/{vmid}", ["VM.Clone"]], ["perm", "/", ["Sys.Audit"]]],
            {"/vms": {"VM.Clone"}},
            "Permission check failed (/, Sys.Audit)",
        ),
        (["or", *MAPPED], {"/mapping": {"Mapping.Audit"}}, None),
        (["or", *MAPPED], {}, "Permission check failed"),
        (
            ["or", ["perm", "/pool/{pool}", ["VM.Allocate"], "require_param", "pool"]],
            {"/pool": {"VM.Allocate"}},
            "Permission check failed",
        ),
        (
            ["perm", "/vms/{vmid}", ["VM.GuestAgent.Audit"]],
            {"/vms": {"VM.GuestAgent.Audit"}},
            None,
        ),
    ],
)
def test_checks_of_the_schema(
    check: list[Any], granted: dict[str, set[str]], refusal: str | None
) -> None:
    access = Access(roles_of(legacy=False), b"")
    for path, names in granted.items():
        access.roles[path] = frozenset(names)
        access.grants.append(Grant(path, "one@pve", "user", path))
    given = {"vmid": "7", "id": "files"}
    said = None
    try:
        permissions.require(access, Identity("one@pve"), tuple(check), given)
    except PveError as error:
        said = (error.status, error.text)
    assert said == (None if refusal is None else (403, refusal))


def test_one_privilege_of_the_version_before() -> None:
    access = Access(roles_of(legacy=True), b"")
    access.roles["few"] = frozenset({"VM.Monitor"})
    access.grants.append(Grant("/vms", "one@pve", "user", "few"))
    [route] = [one for one in ROUTES if one.path.endswith("/agent/ping")]
    permissions.require(access, Identity("one@pve"), route.check, {"vmid": "7"})


def test_flags_of_the_schema() -> None:
    no_token = {f"{one.method} {one.path}" for one in ROUTES if not one.token}
    assert no_token == {"POST /access/ticket"}
    assert {one.path.split("/")[3] for one in ROUTES if one.modern} == {"rules"}
