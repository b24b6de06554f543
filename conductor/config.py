"""Options of the conductor."""

from __future__ import annotations

import ipaddress

from oslo_config import cfg, types

from common.metrics import config as metrics
from common.option_types import Form
from common.resources import networks, volumes
from conductor.notifications import config as notifications
from conductor.seed import parse_flavor
from conductor.store.networks import segments
from conductor.store.networks.networks import parse_subnet
from conductor.tracing import config as tracing

OPTIONS = [
    cfg.IntOpt(
        "workers",
        default=16,
        min=1,
        max=256,
        help="Operations that one conductor works on at the same time.",
    ),
    cfg.BoolOpt(
        "own_scheduler",
        default=False,
        help="Whether each conductor has a scheduler in its own process, which chooses the hosts "
        "of its servers by the same filters, weighers, claims and explanations, without a "
        "message. Schedulers of their own aren't needed then, and do no harm.",
    ),
    cfg.IntOpt(
        "lease_seconds",
        default=60,
        min=5,
        help="Lease duration without renewal; after that another process takes the operation "
        "over. Must be longer than rpc_timeout_seconds.",
    ),
    cfg.FloatOpt(
        "scan_seconds",
        default=5.0,
        min=0.1,
        help="Seconds between two scans for operations that are due: abandoned ones, and those "
        "whose wait is over. New operations start at once.",
    ),
    cfg.IntOpt(
        "build_timeout_seconds",
        default=900,
        min=10,
        help="Seconds after which a build fails and what it made is removed.",
    ),
    cfg.IntOpt(
        "shelved_offload_time",
        default=0,
        min=-1,
        max=0,
        help="0: a server that is shelved gives back its processors and memory at once; -1: only "
        "when an administrator offloads it.",
    ),
    cfg.IntOpt(
        "copy_timeout_seconds",
        default=7200,
        min=10,
        help="Seconds after which the image of a server or of a volume, whose disk is copied, and "
        "the move of a volume to another storage fail, and what they made is removed.",
    ),
    cfg.IntOpt(
        "backup_timeout_seconds",
        default=43200,
        min=10,
        help="Seconds after which the backup of a volume, or its restoration, fails and what it "
        "made is removed. A node makes one backup at a time: it may wait for others.",
    ),
    cfg.IntOpt(
        "store_image_timeout_seconds",
        default=86400,
        min=10,
        help="Seconds after which a cluster that did not get an uploaded image won't get it any "
        "more, and after which the data are not kept for it.",
    ),
    cfg.IntOpt(
        "staged_image_seconds",
        default=86400,
        min=10,
        help="Seconds after which data that were staged for an image, and not imported, are "
        "dropped.",
    ),
    cfg.IntOpt(
        "action_timeout_seconds",
        default=300,
        min=10,
        help="Seconds after which any other operation fails; a delete continues in the "
        "background.",
    ),
    cfg.IntOpt(
        "reclaim_instance_interval",
        default=0,
        min=0,
        help="Seconds for which a deleted server is only stopped and can be restored; then it is "
        "deleted for good. A rescued, resized or shelved one is deleted at once. 0: all are.",
    ),
    cfg.IntOpt(
        "live_migration_timeout_seconds",
        default=3600,
        min=10,
        help="Seconds after which a live migration is no longer waited for. It is never stopped: "
        "once it has ended, the record follows the VM to its host.",
    ),
    cfg.IntOpt(
        "move_timeout_seconds",
        default=3600,
        min=10,
        help="Seconds after which a resize or a migration fails and is undone. The time to copy "
        "disks on node-local storage counts. An evacuation waits as long for the HA manager.",
    ),
    cfg.IntOpt(
        "bulk_migration_timeout_seconds",
        default=86_400,
        min=10,
        help="Seconds after which a drain or a rebalance begins no more moves; it ends with the "
        "moves in progress, and reports which servers remain.",
    ),
    cfg.IntOpt(
        "bulk_moves_in_all",
        default=8,
        min=1,
        max=1000,
        help="Servers that all drains and rebalances together move at the same time.",
    ),
    cfg.BoolOpt(
        "allow_resize_to_same_host",
        default=True,
        help="Whether a server is resized on its own host where that has room, so that nothing "
        "is copied. Otherwise it always moves to another host. A cold migration always does.",
    ),
    cfg.IntOpt(
        "max_attempts",
        default=3,
        min=1,
        max=20,
        help="Number of hosts on which a build is tried, the first one included.",
    ),
    cfg.IntOpt(
        "max_waits",
        default=5,
        min=0,
        max=100,
        help="How often an operation waits for the same host (for a lock, for example) before it "
        "fails.",
    ),
    cfg.IntOpt(
        "wait_most_seconds",
        default=86400,
        min=0,
        help="The longest time that a request waits for room on a host, where it asks to by the "
        "hint or the extra spec micronova:wait. 0: none waits.",
    ),
    cfg.IntOpt(
        "waiting_of_project",
        default=50,
        min=0,
        help="Servers of one project that may wait for room at a time; further ones fail at once.",
    ),
    cfg.IntOpt(
        "waiting_most",
        default=10000,
        min=0,
        help="Servers of all projects that may wait for room at a time.",
    ),
    cfg.IntOpt(
        "overtake_most",
        default=100,
        min=1,
        help="By how many later, smaller requests a request that waits for room may be overtaken "
        "before a host is kept for it.",
    ),
    cfg.IntOpt(
        "agent_lease_seconds",
        default=30,
        min=4,
        help="Seconds after which another worker with the same clusters takes over the agents of "
        "a worker that is silent. It asks every sixth part of that. Must be shorter than "
        "host_down_seconds, so that no host counts as down in between.",
    ),
    cfg.IntOpt(
        "host_down_seconds",
        default=60,
        min=10,
        help="Seconds after its agent's last report until a host counts as down and work on it "
        "fails.",
    ),
    cfg.FloatOpt(
        "settle_seconds",
        default=15.0,
        min=0.0,
        help="Seconds after a change of a server's record during which agents' reports on its VM "
        "are ignored: Proxmox VE's list of VMs is up to ten seconds old, and clocks differ. "
        "With a lower value a server that was just started may seem to be stopped by "
        "somebody else.",
    ),
    cfg.IntOpt(
        "vmid_quarantine_seconds",
        default=86_400,
        min=0,
        help="Seconds until a quarantined VMID may be used again.",
    ),
    cfg.IntOpt(
        "audit_interval_seconds",
        default=300,
        min=10,
        max=86_400,
        help="Seconds between two audits, which compare servers, VMs, volumes, allocations, "
        "addresses and VMIDs. One conductor at a time runs one.",
    ),
    cfg.IntOpt(
        "audit_reads",
        default=100,
        min=0,
        max=10_000,
        help="VMs per cluster whose descriptions an audit reads to check their marks: one call "
        "each, those read the longest ago first. Proxmox VE's lists have no descriptions. "
        "0: none.",
    ),
    cfg.BoolOpt(
        "audit_heals",
        default=True,
        help="Whether an audit releases or removes what is provably this cloud's and no record "
        "owns. If false, it only reports, and 'micronova orphan reap' removes.",
    ),
    cfg.FloatOpt(
        "audit_settle_seconds",
        default=2.0,
        min=0.0,
        max=600.0,
        help="Seconds between an audit's two looks: only differences in both count.",
    ),
    cfg.IntOpt(
        "template_grace_seconds",
        default=3600,
        min=0,
        help="Seconds for which an image's cached template is kept once the image is deleted and "
        "no server uses it.",
    ),
    cfg.IntOpt(
        "history_days",
        default=90,
        min=0,
        max=36_500,
        help="Days after their end for which the details of operations are kept: steps, "
        "decisions, transitions and faults, which 'micronova explain' shows. Operations "
        "themselves, their results and the last faults of existing servers are always kept. "
        "0: no limit.",
    ),
    cfg.IntOpt(
        "history_operations",
        default=1_000_000,
        min=0,
        help="Number of newest operations whose details are kept; some 5 KiB each, and up to 50 "
        "KiB if many hosts were refused. 0: no limit.",
    ),
    cfg.IntOpt(
        "refusals_kept",
        default=1000,
        min=0,
        help="Number of newest refused requests per project for which 'micronova explain' shows "
        "the reason: quota, validation, policy, conflicts; for history_days at most. About "
        "1 KiB each. 0: none.",
    ),
    cfg.StrOpt(
        "name",
        help="Name of this conductor in the list of services, unique in the cloud; default: the "
        "machine's host name, with -2, -3 and so on for further ones of one machine.",
    ),
]

NETWORK_OPTIONS = [
    cfg.ListOpt(
        "subnets",
        item_type=Form(parse_subnet),
        default=[],
        help="Addresses that micronova assigns on a bridge: "
        "BRIDGE=CIDR[;gateway=IP][;pool=FIRST-LAST][;dns=IP+IP], e.g. "
        "vmbr0=10.20.0.0/16;gateway=10.20.0.1. The gateway defaults to the first address, "
        "the pool to all others. Other bridges have no addresses: their guests use DHCP.",
    ),
    cfg.Opt(
        "vlans",
        default={},
        type=types.Dict(types.Integer(1, 4094)),
        help="VLAN tags of the networks of bridges, e.g. vmbr0:7. Nodes whose bridge doesn't "
        "take the tag get no servers on that network.",
    ),
    cfg.ListOpt(
        "tenant_vlans",
        item_type=Form(segments.parse),
        default=[],
        help="VLAN tags that the networks of projects get: BRIDGE:FIRST-LAST, e.g. "
        "vmbr1:1000-1999. The switches must carry them between all nodes with the bridge, and "
        "nothing else may use them. None: projects can't make networks.",
    ),
    cfg.Opt(
        "auto_cidr",
        type=Form(ipaddress.ip_network, "network"),
        default="10.255.0.0/24",
        help="The subnet of the network that is made for a project whose users name none for "
        "their servers, where there is none for them and tenant_vlans has a tag. It has no "
        "gateway.",
    ),
    cfg.StrOpt(
        "mac_prefix",
        default="fa:16:3e",
        regex="^([0-9a-f]{2}:){2}[0-9a-f]{2}$",
        help="The first three bytes of the MAC addresses of servers.",
    ),
]

IMAGE_OPTIONS = [
    cfg.MultiStrOpt(
        "properties",
        default=[],
        help="Properties of images by name, PATTERN; KEY=VALUE; KEY=VALUE, e.g. windows-*; "
        "hw_firmware_type=uefi; os_type=windows; min_ram=4096. May be given more than once; "
        "of several values for one property of an image, the last one wins. min_disk (GiB) "
        "and min_ram (MiB) are the image's minimum sizes. Servers keep the properties that "
        "their image had when they were created.",
    ),
]

SEED_OPTIONS = [
    cfg.ListOpt(
        "flavors",
        item_type=Form(parse_flavor),
        default=[],
        help="Flavors that are created if there are none: [ID:]NAME:VCPUS:MEMORY_MIB:DISK_GIB.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Declare this module's options; idempotent."""
    metrics.register(conf)
    conf.register_opts(OPTIONS, group="conductor")
    conf.register_opts(NETWORK_OPTIONS, group="networks")
    networks.register(conf)
    conf.register_opts(IMAGE_OPTIONS, group="images")
    volumes.register(conf)
    notifications.register(conf)
    tracing.register(conf)
    conf.register_opts(SEED_OPTIONS, group="seed")
