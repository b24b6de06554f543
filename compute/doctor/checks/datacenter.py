"""Options of the datacenter, and high availability."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from shlex import quote as _quoted

from common.findings import Finding, Level
from compute.doctor.facts import Answer, Facts
from compute.hypervisor.proxmox.ha.rules import has_rules
from compute.hypervisor.proxmox.vmconfig.hardware import TAG

#: guests from which on the load of the cluster's file system and statistics daemon is a finding
MANY_GUESTS = 5000
#: the largest file of pmxcfs in bytes, and the part of that from which it is a finding
MOST_FILE_BYTES = 1 << 20
_NEARLY_FULL = 0.75
_UNREGISTER = "--delete registered-tags"


def tags(facts: Facts) -> Iterator[Finding]:
    """Yield that the token may not set the tag of this cloud's VMs.

    By the rule of Proxmox VE (PVE::GuestHelpers, assert_tag_permissions): Sys.Modify on / may set
    all, others what user-tag-access says, but for registered tags.
    """
    if "Sys.Modify" in facts.granted.get("/", {}):
        return
    given = facts.options.get("user-tag-access")
    access = given if isinstance(given, Mapping) else {}
    way = str(access.get("user-allow") or "free")
    listed = [] if way == "none" else list(access.get("user-allow-list") or ())
    registered = list(facts.options.get("registered-tags") or ())
    known = facts.options.get("allowed-tags") or ()
    said, options = [], []
    if TAG in registered:
        others = ";".join(tag for tag in registered if tag != TAG)
        said.append("it is registered, for which Sys.Modify on / is needed")
        options.append(f"--registered-tags {_quoted(others)}" if others else _UNREGISTER)
    if way != "free" and TAG not in listed and not (way == "existing" and TAG in known):
        kept = "existing" if way == "existing" else "list"
        allowed = f"user-allow={kept},user-allow-list={';'.join((*listed, TAG))}"
        said.append(f"user-tag-access: {way}")
        options.append(f"--user-tag-access {_quoted(allowed)}")
    if said:
        yield Finding(
            "tags_refused",
            Level.BROKEN,
            f"Cluster {facts.name}",
            f"The token may not set the tag {TAG} ({'; '.join(said)}).",
            "Every VM of this cloud gets it, so no server is built.",
            (f"pvesh set /cluster/options {' '.join(options)}",),
        )


def scheduling(facts: Facts) -> Iterator[Finding]:
    """Yield that high availability moves servers when it starts them."""
    crs = facts.options.get("crs")
    if isinstance(crs, Mapping) and int(crs.get("ha-rebalance-on-start") or 0):
        yield Finding(
            "crs_moves",
            Level.WARNING,
            f"Cluster {facts.name}",
            "Cluster resource scheduling chooses another node when an HA resource starts.",
            "It knows neither claims nor aggregates nor server groups: servers land on hosts that "
            "the scheduler refused.",
            ("pvesh set /cluster/options --delete crs",),
        )


def high_availability(facts: Facts) -> Iterator[Finding]:
    """Yield HA managers that don't work, and resources in error, where there are resources."""
    if not facts.ha_resources:
        return
    if not any(one.get("type") == "master" for one in facts.ha_status):
        yield Finding(
            "ha_no_master",
            Level.WARNING,
            f"Cluster {facts.name}",
            "There are HA resources, and no manager.",
            "Starts, stops and moves of these servers are accepted and never carried out.",
            ("systemctl restart pve-ha-crm",),
        )
    for one in facts.ha_status:
        status = str(one.get("status", ""))
        if one.get("type") == "lrm" and "dead" in status:
            yield Finding(
                "ha_node_dead",
                Level.WARNING,
                f"Node {one.get('node')}",
                f"Its HA manager doesn't report: {status}.",
                "Starts, stops and moves of HA resources there are never carried out.",
                ("systemctl restart pve-ha-lrm",),
            )
        if one.get("type") == "service" and one.get("state") == "error":
            yield Finding(
                "ha_error",
                Level.WARNING,
                f"Cluster {facts.name}",
                f"The HA resource {one.get('sid')} is in error.",
                "Nothing is done with this VM until its state is set again.",
                (
                    f"ha-manager set {one.get('sid')} --state disabled",
                    f"ha-manager set {one.get('sid')} --state started",
                ),
            )


def guests(facts: Facts) -> Iterator[Finding]:
    """Yield that there are more guests than the cluster's file system carries well."""
    count = len(facts.snapshot.vms)
    if count > MANY_GUESTS:
        yield Finding(
            "guests_many",
            Level.WARNING,
            f"Cluster {facts.name}",
            f"It has {count} guests, templates and volumes' holders.",
            "Each is a file in pmxcfs, which holds 128 MiB in all, and a line of every status: "
            "Proxmox VE slows down from some thousands on. Others need a cluster of their own.",
            ("du --apparent-size -sh /etc/pve",),
        )


def file_sizes(facts: Facts) -> Iterator[Finding]:
    """Yield HA files that soon reach the largest size in pmxcfs, estimated from their entries."""
    for name, listed in (("resources", facts.ha_resources), ("rules", facts.ha_rules)):
        size = _bytes(listed)
        if size > MOST_FILE_BYTES * _NEARLY_FULL:
            yield Finding(
                "pmxcfs_file_large",
                Level.WARNING,
                f"Cluster {facts.name}",
                f"/etc/pve/ha/{name}.cfg has about {size >> 10} of the "
                f"{MOST_FILE_BYTES >> 10} KiB that pmxcfs takes.",
                "When it is full no HA resource or rule can be added or changed.",
                (f"ls -l /etc/pve/ha/{name}.cfg",),
            )


def _bytes(listed: Iterable[Answer]) -> int:
    """Return how long entries are in a section file: a line for each value."""
    return sum(len(key) + len(str(value)) + 3 for one in listed for key, value in one.items())


def affinity_rules(facts: Facts) -> Iterator[Finding]:
    """Yield that rules are to be written where there are none yet."""
    release = facts.snapshot.version
    if facts.settings.write_affinity_rules and release and not has_rules(release):
        yield Finding(
            "rules_unknown",
            Level.WARNING,
            f"Cluster {facts.name}",
            f"Affinity rules are to be written, and Proxmox VE {release} has none.",
            "High availability doesn't know of strict server groups: it may put members of one "
            "that are to be apart on one node. Rules come with 9.0.",
            (f"# [proxmox:{facts.name}] write_affinity_rules = false",),
        )
