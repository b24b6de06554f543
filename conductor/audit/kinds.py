"""Every kind of finding as data: severity, what heals it, and texts for operators.

``verb`` heals a finding *that is proven*; without proof, or with ``REPORT``, it is only reported.
A name, a tag or a VMID alone never proves anything.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from conductor.store.networks.segments import OF_OTHERS


class Verb(enum.StrEnum):
    """What heals a finding."""

    REPORT = "report"  #: only a person can heal it
    DESTROY = "destroy"  #: an operation with a Destroy command and its ownership fence
    RELEASE = "release"  #: delete the consumer's allocations, by its generation
    ALLOCATE = "allocate"  #: make the allocations agree with the record, by the generation
    RETIRE = "retire"  #: a RetireTemplate command: fenced, and only while nothing depends on it
    DELETE_PORTS = "delete_ports"  #: release ports and addresses
    FREE_PLACE = "free_place"  #: release a server group's place on a host
    AFFINITY = "affinity"  #: write the recorded group to the hypervisor
    FREE_VMID = "free_vmid"
    RESERVE_VMID = "reserve_vmid"
    REMOVE_FILE = "remove_file"  #: a RemoveImage command: only a file named after the image
    FILTER = "filter"  #: write a VM's firewall as the security groups say
    MAKE_VNET = "make_vnet"  #: a MakeVnet command
    PARK = "park"  #: a SnapVolume command, fenced: the volume rests in its holder
    REMOVE_VNET = "remove_vnet"  #: a RemoveVnet command: only one whose alias is the network
    FAIL = "fail"  #: set a server in a transient state without an operation to ERROR


class Severity(enum.StrEnum):
    """How serious a finding is."""

    LEAK = "leak"  #: something exists that no record owns
    DAMAGE = "damage"  #: the record is wrong
    NOTICE = "notice"  #: not ours, or changed by a person: worth knowing


@dataclass(frozen=True)
class Kind:
    """One kind of finding."""

    name: str
    severity: Severity
    verb: Verb
    proof: str
    """What must agree before it is healed."""
    remedy: str | None = None
    """For the operator; may name {vmid}, {node}, {cluster}, {server}, {subject} and evidence."""
    doubt: str | None = None
    """The remedy if it is not proven; None: the same."""
    destroys: bool = False
    """Whether a remedy, or the verb, destroys something: then what is lost is said with it."""


_JOURNAL_AND_MARK = (
    "the journal gave this VMID to the server, all marks name it, and the record says that it "
    "has no VM there"
)

#: a VM names a volume that its server doesn't have
ELSEWHERE = "volume_referenced_elsewhere"

_NOT_PROVEN = "Not proven this cloud's to remove, so it never touches it: see the evidence."

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        # The record itself
        Kind(
            "record_restored",
            Severity.DAMAGE,
            Verb.REPORT,
            "none: a mark of this cloud is newer than its record; only a person knows whether an "
            "older copy was put back",
            "What would be done: micronova restore. To do it, and release what is held: "
            "micronova restore --apply",
        ),
        # VMs
        Kind(
            "vm_of_deleted_server",
            Severity.LEAK,
            Verb.DESTROY,
            f"{_JOURNAL_AND_MARK}: it was deleted",
            "micronova orphan reap",
            _NOT_PROVEN,
            destroys=True,
        ),
        Kind(
            "vm_not_recorded",
            Severity.LEAK,
            Verb.DESTROY,
            f"{_JOURNAL_AND_MARK}: it has none, or another one",
            "micronova orphan reap",
            _NOT_PROVEN,
            destroys=True,
        ),
        Kind(
            "vm_without_server",
            Severity.LEAK,
            Verb.REPORT,
            "none: its marks name a server that the record doesn't have, and no cloud",
            "If another cloud owns it, give every cloud on the cluster a band of VMIDs of its own "
            "(vmid_low, vmid_high). If it is this cloud's, take the lines 'micronova: …' off its "
            "description, then: micronova server adopt --cluster {cluster} --vmid {vmid} "
            "--project …",
        ),
        Kind(
            "vm_record_lost",
            Severity.DAMAGE,
            Verb.REPORT,
            "none: its marks name this cloud, and only a person knows what became of the record",
            "Nothing of it is ever destroyed by this cloud. To have its server again, with the "
            "same ID: micronova server adopt --cluster {cluster} --vmid {vmid} --project "
            "{project}",
        ),
        Kind(
            "vm_half_made",
            Severity.LEAK,
            Verb.REPORT,
            "none that a token could act on: only root clears its lock",
            "as root on {node}: qm unlock {vmid} && qm destroy {vmid} --purge{frees}",
            destroys=True,
        ),
        Kind(
            "vm_foreign",
            Severity.NOTICE,
            Verb.REPORT,
            "none: it is not ours, and is never touched",
            "Move it to a VMID outside of the band that micronova has for itself.",
        ),
        Kind(
            "band_shared",
            Severity.DAMAGE,
            Verb.REPORT,
            "its mark names the cloud that made it, which is another one",
            "Give every cloud on the cluster a band of VMIDs of its own (vmid_low, vmid_high).",
        ),
        Kind(
            "lock_stuck",
            Severity.DAMAGE,
            Verb.REPORT,
            "no running task explains the lock; only root clears it",
            "as root on {node}: qm unlock {vmid}",
        ),
        Kind(
            "template_without_record",
            Severity.LEAK,
            Verb.RETIRE,
            "its mark names this cloud, the journal gave the VMID to a template, and no build "
            "is open that might use it",
            "If nothing is cloned from it, as root on {node}: qm destroy {vmid} --purge",
            destroys=True,
        ),
        Kind("server_without_vm", Severity.DAMAGE, Verb.REPORT, "the cluster lists no such VM"),
        Kind(
            "mark_lost",
            Severity.DAMAGE,
            Verb.REPORT,
            "its SMBIOS UUID is the server's, and the journal gave the server this VMID",
            "micronova server mark {server}",
        ),
        Kind(
            "smbios_edited",
            Severity.DAMAGE,
            Verb.REPORT,
            "its description names the server, its SMBIOS UUID does not",
            "If it is the server's VM, as root on {node}: qm set {vmid} --smbios1 uuid={server}",
        ),
        Kind(
            "vm_replaced",
            Severity.DAMAGE,
            Verb.REPORT,
            "neither its SMBIOS UUID nor its description names the server",
            "If it is the server's VM all the same, as root on {node}: qm set {vmid} --smbios1 "
            "uuid={server}, then: micronova server mark {server}. If it is not: micronova server "
            "forget {server}",
        ),
        Kind(
            "template_unmarked",
            Severity.DAMAGE,
            Verb.REPORT,
            "the record names the template, its description does not",
            "No server is cloned from it any more. If it is the template, as root on {node}: "
            "{marks}",
        ),
        Kind(
            "disk_missing",
            Severity.DAMAGE,
            Verb.REPORT,
            "the VM is the server's, and was read: it has no such disk, or its storage hasn't",
            "If the VM's config lists it as unused, as root on {node}: qm set {vmid} --{option} "
            "<disk>; for the root disk also: --boot order={option}. If the disk no longer exists, "
            "a rebuild creates new ones: openstack server rebuild {server}",
        ),
        Kind("vm_elsewhere", Severity.DAMAGE, Verb.REPORT, "the cluster lists it on another node"),
        # Volumes
        Kind(
            "volume_without_vm",
            Severity.LEAK,
            Verb.DESTROY,
            "the journal gave this VMID to one server that has no VM there, and the agent knows "
            "the task that made the volume for ours",
            "micronova orphan reap",
            "A VM of this cloud had the VMID, but no task on record says that it made this disk. "
            "If it is that VM's, and it is not needed, as root on {node}: pvesm free {volid}",
            destroys=True,
        ),
        Kind(
            "volume_foreign",
            Severity.NOTICE,
            Verb.REPORT,
            "none: no server of this cloud ever had the VMID, or bears the name",
            "It is not this cloud's, and never touched: its VMID is passed over. Another cluster "
            "or cloud that shares storage {storage} may own it.",
        ),
        Kind(
            "config_drive_without_server",
            Severity.LEAK,
            Verb.DESTROY,
            "its name names the server, and the journal gave that server this VMID",
            "micronova orphan reap",
            "It bears the name of a server of this cloud. If no VM uses it, as root on {node}: "
            "pvesm free {volid}",
            destroys=True,
        ),
        Kind(
            "volume_left_behind",
            Severity.LEAK,
            Verb.REPORT,
            "none: no task on record says who left it there",
            "A move could not remove it, or somebody put it there. If it is not needed, as root "
            "on {node}: pvesm free {volid}",
            destroys=True,
        ),
        Kind(
            "config_drive_left_behind",
            Severity.LEAK,
            Verb.DESTROY,
            "its name names the server, the journal gave that server this VMID, and record and "
            "cluster agree that the VM is on another node",
            "micronova orphan reap",
            "It bears the name of a server whose VM is on another node. If no VM uses it, as root "
            "on {node}: pvesm free {volid}",
            destroys=True,
        ),
        # Volumes
        Kind(
            "holder_without_volume",
            Severity.LEAK,
            Verb.REPORT,
            "its description names a volume of this cloud that the record doesn't have there",
            "If its disk is not needed, as root on {node}: qm set {vmid} --protection 0 && qm "
            "destroy {vmid} --purge",
            destroys=True,
        ),
        Kind(
            "holder_replaced",
            Severity.DAMAGE,
            Verb.REPORT,
            "the VM that is to hold a volume does not say so",
            "If it is the volume's holder, as root on {node}: {marks}",
        ),
        Kind(
            "holder_not_parked",
            Severity.NOTICE,
            Verb.PARK,
            "all marks of the holder name the volume, and no operation works on it",
            "As root on {node}: qm set {vmid} --delete scsi0 --protection 1",
        ),
        Kind(
            "volume_missing",
            Severity.DAMAGE,
            Verb.REPORT,
            "the cluster was read as a whole and has not what the record has there",
            "If it is gone for good: openstack volume set --state error {subject}, then: "
            "openstack volume delete --force {subject}",
        ),
        Kind(
            "backup_without_record",
            Severity.LEAK,
            Verb.REPORT,
            "the archive's notes name a backup of this cloud that the record doesn't have there",
            "If it is not needed, as root on {node}: pvesh set "
            "/nodes/{node}/storage/{storage}/content/{volid} --protected 0 && pvesm free {volid}",
            destroys=True,
        ),
        Kind(
            "backup_missing",
            Severity.DAMAGE,
            Verb.REPORT,
            "the cluster was read as a whole and doesn't list the archive that the record has",
            "If it is gone for good: openstack volume backup delete {subject}. If only its notes "
            "were changed, as root on {node}: {marks}",
        ),
        Kind(
            ELSEWHERE,
            Severity.DAMAGE,
            Verb.REPORT,
            "none: somebody may be writing to the volume by it, so it is never cut",
            "Stop VM {vmid} if another VM has the volume as well. If it isn't to have it, as root "
            "on {node}: qm set {vmid} --delete {option}",
        ),
        Kind(
            "volume_not_referenced",
            Severity.DAMAGE,
            Verb.REPORT,
            "the VM is the server's, and its configuration doesn't name the volume",
            "openstack server remove volume {server} {volume}, then: openstack server add volume "
            "{server} {volume}",
        ),
        Kind(
            "volume_out_of_reach",
            Severity.DAMAGE,
            Verb.REPORT,
            "the cluster lists the VM on a node that hasn't the volume's storage",
            "High availability, or somebody, has moved VM {vmid}: migrate it back, and keep it to "
            "the nodes of storage {storage} by a node affinity rule.",
        ),
        Kind(
            "volume_in_vm_snapshot",
            Severity.NOTICE,
            Verb.REPORT,
            "none: a person made the snapshot, in which volumes are as well",
            "A roll-back of it changes the volumes, also after they are detached. If it is not "
            "needed, as root on {node}: qm delsnapshot {vmid} {snapshot}",
            destroys=True,
        ),
        Kind(
            "snapshot_without_record",
            Severity.LEAK,
            Verb.REPORT,
            "the VM holds a volume of the record, which has no such snapshot",
            "If it is not needed, as root on {node} (the disk is plugged for the deletion): "
            "qm set {vmid} --protection 0 --scsi0 {volid} && qm delsnapshot {vmid} {snapshot} && "
            "qm set {vmid} --delete scsi0 --protection 1",
            destroys=True,
        ),
        Kind(
            "snapshot_missing",
            Severity.DAMAGE,
            Verb.REPORT,
            "the holder was read and has not, as a whole, what the record has there",
            "It is lost: openstack volume snapshot set --state error {subject}, then openstack "
            "volume snapshot delete {subject}.",
        ),
        Kind(
            "volume_size_differs",
            Severity.DAMAGE,
            Verb.REPORT,
            "the storage lists the disk with another size than quota counts",
            "openstack volume set --size <GiB> {volume}, with more than both sizes, makes them "
            "agree.",
        ),
        # Images
        Kind(
            "image_file_without_image",
            Severity.LEAK,
            Verb.REMOVE_FILE,
            "its name says that it is this cloud's, the ledger has its upload, the record has no "
            "such image there, and no operation works on it",
            None,
            "It is this cloud's by its name, but the ledger has no upload of it. If it is not "
            "needed, as root on {node}: pvesm free {volid}",
            destroys=True,
        ),
        Kind(
            "vnet_without_network",
            Severity.LEAK,
            Verb.REMOVE_VNET,
            "its name and its alias say that it is this cloud's, the ledger has its making, the "
            "record has no such network there, and no operation works on it",
            None,
            "It is this cloud's by its alias, but the ledger has no making of it. If no VM uses "
            "it, as root on a node of cluster {cluster}: pvesh delete "
            "/cluster/sdn/vnets/{vnet} && pvesh set /cluster/sdn",
            destroys=True,
        ),
        Kind(
            "network_without_vnet",
            Severity.DAMAGE,
            Verb.MAKE_VNET,
            "the cluster doesn't list the vnet that the record has there",
        ),
        Kind(
            "image_without_file",
            Severity.DAMAGE,
            Verb.REPORT,
            "the cluster doesn't list the file of an image that the record has there",
            "Upload the data again as a new image, and delete this one; servers made of it are "
            "not affected.",
        ),
        # Interfaces and firewalls
        Kind(
            "port_without_nic",
            Severity.DAMAGE,
            Verb.REPORT,
            "the VM is the server's, and its configuration has no interface of the port's MAC",
            "openstack server remove port {server} {subject}, then add it again",
        ),
        Kind(
            "nic_without_port",
            Severity.LEAK,
            Verb.REPORT,
            "none: its MAC begins as this cloud's do, but a person may have chosen it",
            "If it is not needed, take interface {mac} off VM {vmid} on {node} in Proxmox VE",
        ),
        Kind(
            "nic_elsewhere",
            Severity.DAMAGE,
            Verb.REPORT,
            "the VM is the server's, and its interface has the port's MAC",
            "In Proxmox VE, put interface {mac} of VM {vmid} on {node} onto bridge {bridge}, VLAN "
            "tag {vlan}; or: openstack server remove port {server} {subject}, then add it again",
        ),
        Kind(
            OF_OTHERS,
            Severity.DAMAGE,
            Verb.REPORT,
            "none: the VM is not ours, and is never touched",
            "In Proxmox VE, give the interface of VM {vmid} on {node} another VLAN tag than "
            "{vlan}, or take that out of [networks] tenant_vlans. Until then no network gets it.",
        ),
        Kind(
            "firewall_differs",
            Severity.DAMAGE,
            Verb.FILTER,
            "the record says what the groups of its ports let pass",
            "If it comes again, somebody else writes the firewall of VM {vmid}: what is to pass "
            "belongs into its security groups.",
        ),
        Kind(
            "firewall_foreign",
            Severity.NOTICE,
            Verb.REPORT,
            "none: it has no comment of ours",
            "What is to pass belongs into security groups; take the rest out of the firewall of "
            "VM {vmid} in Proxmox VE.",
        ),
        # Allocations
        Kind(
            "allocation_without_server",
            Severity.LEAK,
            Verb.RELEASE,
            "the consumer is a server of ours that is deleted, or has no VM",
        ),
        Kind(
            "allocation_unknown",
            Severity.NOTICE,
            Verb.REPORT,
            "none: the consumer was never a server of this cloud",
            "If nobody else uses these hosts: openstack resource provider allocation delete "
            "{subject}",
        ),
        Kind(
            "migration_allocation_left",
            Severity.LEAK,
            Verb.RELEASE,
            "the consumer is a migration of ours that has ended",
        ),
        Kind(
            "migration_allocation_differs",
            Severity.DAMAGE,
            Verb.REPORT,
            "none: the migration is open",
            "Confirm or revert it: openstack server migration confirm {server}, or: openstack "
            "server migration revert {server}",
        ),
        Kind(
            "server_without_allocation",
            Severity.DAMAGE,
            Verb.ALLOCATE,
            "the record says host and size",
        ),
        Kind(
            "allocation_differs",
            Severity.DAMAGE,
            Verb.ALLOCATE,
            "the record says host and size",
        ),
        # Addresses, VMIDs, operations, sizes
        Kind(
            "port_without_server",
            Severity.LEAK,
            Verb.DELETE_PORTS,
            "the server of the port is deleted, or has no VM",
        ),
        Kind("address_without_port", Severity.DAMAGE, Verb.REPORT, "the server shows the address"),
        Kind(
            "group_place_without_server",
            Severity.LEAK,
            Verb.FREE_PLACE,
            "the server that holds the place is deleted, or has no VM",
        ),
        Kind(
            "affinity_rule_left",
            Severity.LEAK,
            Verb.AFFINITY,
            "its name, and the comment of its resources, say this cloud and the group",
            "If it is not needed, in Datacenter, HA: remove the rule and resources that name the "
            "group {subject}",
        ),
        Kind(
            "affinity_rule_incomplete",
            Severity.DAMAGE,
            Verb.AFFINITY,
            "the record says which servers the group has there",
            "The agent's token needs Sys.Console on / of cluster {cluster}, or switch "
            "write_affinity_rules off.",
        ),
        Kind(
            "vmid_without_owner",
            Severity.LEAK,
            Verb.FREE_VMID,
            "the server that reserved it is gone, and the cluster has no VM and no volume of it",
        ),
        Kind(
            "vmid_not_reserved",
            Severity.DAMAGE,
            Verb.RESERVE_VMID,
            "the server's record names it",
        ),
        Kind(
            "operation_overdue",
            Severity.DAMAGE,
            Verb.REPORT,
            "its deadline is long over",
            "micronova explain {server}",
        ),
        Kind(
            "server_abandoned",
            Severity.DAMAGE,
            Verb.FAIL,
            "the record says that it is being worked on, and no operation is open",
        ),
        Kind(
            "quota_mismatch",
            Severity.DAMAGE,
            Verb.REPORT,
            "the cluster lists the VM with another size than quota counts",
        ),
    )
}

#: kinds that only a VM's own configuration shows; unread VMs say nothing of these
BY_MARKS = frozenset(
    {"mark_lost", "smbios_edited", "vm_replaced", "template_unmarked"}
    | {"vm_of_deleted_server", "vm_not_recorded", "vm_without_server", "vm_half_made"}
    | {"vm_record_lost"}
    | {"vm_foreign", "band_shared", "template_without_record"}
)
#: kinds that only a VM's own configuration shows, of VMs that are known to be ours
BY_CONFIG = (
    BY_MARKS
    | {"port_without_nic", "nic_without_port", "nic_elsewhere"}
    | {"holder_replaced", "holder_not_parked", ELSEWHERE, "volume_not_referenced"}
    | {"volume_in_vm_snapshot", "snapshot_without_record", "snapshot_missing", "disk_missing"}
)
#: kinds that only a look at a VM's firewall shows
BY_FIREWALL = frozenset({"firewall_differs", "firewall_foreign"})
#: kinds of what is on a node where its VM isn't
LEFT_BEHIND = frozenset({"volume_left_behind", "config_drive_left_behind"})
