"""Options of the conductor."""

from __future__ import annotations

from oslo_config import cfg, types

OPTIONS = [
    cfg.IntOpt(
        "workers",
        default=16,
        min=1,
        max=256,
        help="Operations that one conductor works on at once.",
    ),
    cfg.IntOpt(
        "lease_seconds",
        default=60,
        min=5,
        help="How long an operation belongs to whoever works on it without a sign of life; then "
        "another one takes it over. Longer than rpc_timeout_seconds.",
    ),
    cfg.FloatOpt(
        "scan_seconds",
        default=5.0,
        min=0.1,
        help="How often a conductor looks for operations that are due: abandoned ones and those "
        "whose pause is over. New ones don't wait for it.",
    ),
    cfg.IntOpt(
        "build_timeout_seconds",
        default=900,
        min=10,
        help="A build that takes longer fails, and what it made is removed.",
    ),
    cfg.IntOpt(
        "action_timeout_seconds",
        default=300,
        min=10,
        help="Any other operation that takes longer fails; a delete goes on in the background.",
    ),
    cfg.IntOpt(
        "max_attempts",
        default=3,
        min=1,
        max=20,
        help="On how many hosts a build is tried, the first included.",
    ),
    cfg.IntOpt(
        "max_waits",
        default=5,
        min=0,
        max=100,
        help="How often an operation waits for the same host (a lock that was not had) before "
        "that counts as a failure.",
    ),
    cfg.IntOpt(
        "host_down_seconds",
        default=60,
        min=10,
        help="A host whose agent was silent for longer is down: work on it fails.",
    ),
    cfg.FloatOpt(
        "settle_seconds",
        default=15.0,
        min=0.0,
        help="For how long after a change of a server's record what agents see of its VM doesn't "
        "count: Proxmox VE's list of VMs is up to ten seconds old, and clocks differ. With a "
        "shorter time a server that was just started may be taken for one that somebody stopped.",
    ),
    cfg.IntOpt(
        "vmid_quarantine_seconds",
        default=86_400,
        min=0,
        help="How long a doubtful VMID isn't given out again.",
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
        help="VMs of the record, of each cluster, whose descriptions an audit reads to see "
        "whether their marks are as they were written: one call each, those first that were "
        "looked at longest ago. No list of Proxmox VE tells descriptions. 0: never.",
    ),
    cfg.BoolOpt(
        "audit_heals",
        default=True,
        help="Whether an audit gives back or removes what is provably this cloud's and no record "
        "owns. Off: it only reports, and 'micronova orphan reap' does it.",
    ),
    cfg.FloatOpt(
        "audit_settle_seconds",
        default=2.0,
        min=0.0,
        max=600.0,
        help="Seconds between an audit's two looks: only what both show is a difference.",
    ),
    cfg.IntOpt(
        "template_grace_seconds",
        default=3600,
        min=0,
        help="How long the cached template of an image is kept once the image is gone and no "
        "server was made of it.",
    ),
    cfg.IntOpt(
        "history_days",
        default=90,
        min=0,
        max=36_500,
        help="How many days after their end the details of operations are kept: steps, decisions, "
        "changes of state and faults, all that 'micronova explain' tells. That they were, and how "
        "they ended, is kept for good, and so is the last fault of a server that is there. 0: no "
        "bound.",
    ),
    cfg.IntOpt(
        "history_operations",
        default=1_000_000,
        min=0,
        help="Of how many operations, the newest, details are kept at the most; some 5 KiB each, "
        "and up to 50 KiB where many hosts were refused. 0: no bound.",
    ),
    cfg.IntOpt(
        "refusals_kept",
        default=1000,
        min=0,
        help="Of how many refused requests of a project, the newest, 'micronova explain' tells "
        "why they were: quota, validation, policy, conflicts; for history_days at the most. About "
        "1 KiB each. 0: none is kept.",
    ),
    cfg.StrOpt(
        "name",
        help="Name of this conductor in the list of services; default: the machine's host name "
        "and the process ID.",
    ),
]

NETWORK_OPTIONS = [
    cfg.ListOpt(
        "subnets",
        default=[],
        help="Addresses that micronova hands out on a bridge: BRIDGE=CIDR[;gateway=IP]"
        "[;pool=FIRST-LAST][;dns=IP+IP], e.g. vmbr0=10.20.0.0/16;gateway=10.20.0.1. The gateway "
        "defaults to the first address, the pool to all others. Bridges that are not named have "
        "no addresses: their guests use DHCP.",
    ),
    cfg.Opt(
        "vlans",
        default={},
        type=types.Dict(types.Integer(1, 4094)),
        help="VLAN tags of the networks of bridges, e.g. vmbr0:7. Nodes whose bridge doesn't take "
        "the tag get no servers of that network.",
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
        "hw_firmware_type=uefi; os_type=windows; min_ram=4096. May be given more than once; of "
        "two that say something of one property of an image, the later counts. min_disk (GiB) "
        "and min_ram (MiB) are what the image needs. Servers keep the properties that their "
        "image had when they were created.",
    ),
]

SEED_OPTIONS = [
    cfg.ListOpt(
        "flavors",
        default=[],
        help="Flavors that are made when there is none at all: [ID:]NAME:VCPUS:"
        "MEMORY_MIB:DISK_GIB.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Declare this module's options; idempotent."""
    conf.register_opts(OPTIONS, group="conductor")
    conf.register_opts(NETWORK_OPTIONS, group="networks")
    conf.register_opts(IMAGE_OPTIONS, group="images")
    conf.register_opts(SEED_OPTIONS, group="seed")
