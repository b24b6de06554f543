"""The network that the cloud chooses where a user names none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from oslo_config import cfg

from common.errors import Conflict, Invalid
from common.option_types import Form
from common.resources import vnets

#: what a VM can have: Proxmox VE has net0 to net31
MOST_INTERFACES = 32


def too_many_interfaces() -> Invalid:
    """Return the refusal of one interface more."""
    return Invalid(f"A server can't have more than {MOST_INTERFACES} interfaces.")


AUTO = cfg.StrOpt(
    "auto",
    help="The network of servers whose user names none, or asks for `auto`, where there are "
    "several that the project owns or shares: its bridge. Without it users must name one then. "
    "Only conductors need it.",
)

VNETS = cfg.ListOpt(
    "tenant_vnets",
    item_type=Form(vnets.parse),
    default=[],
    help="VNIs that the networks of projects get in VXLAN zones of Proxmox VE's SDN: "
    "CLUSTER:ZONE:FIRST-LAST, e.g. *:tenants:10000-19999; *: every cluster that has the zone. "
    "The operator makes the zone; micronova makes a vnet for each network and applies it. "
    "Nothing else may use the VNIs. Networks get a VNI where tenant_vlans has no tag left, or an "
    "administrator asks for the type vxlan. None: no vnets are made.",
)

#: value of the option below with which ports are filtered regardless of clusters' settings
ON = "on"
FIREWALL = cfg.StrOpt(
    "firewall",
    default="auto",
    choices=[
        ("auto", "they are where the firewall of the datacenter is on in every cluster"),
        (ON, "they are, though nothing is filtered in clusters whose firewall is off"),
        ("off", "they aren't, and groups are only kept"),
    ],
    help="Whether new ports are filtered by their security groups, by the firewall of Proxmox VE. "
    "micronova never turns on that of a datacenter (Datacenter, Firewall, Options): its default "
    "policy can lock administrators out. Ports that are there stay as they are until their "
    "port_security_enabled is set. Ports that aren't filtered show port_security_enabled false.",
)


class Network(Protocol):
    """What is chosen by."""

    @property
    def bridge(self) -> str:
        """The bridge that it is on."""

    @property
    def discovered(self) -> bool:
        """Whether it is that bridge itself, read from a cluster."""


N = TypeVar("N", bound=Network)


def register(conf: cfg.ConfigOpts) -> None:
    """Declare the options in `[networks]`; idempotent."""
    conf.register_opts([AUTO, VNETS, FIREWALL], group="networks")


def chosen(known: Sequence[N], auto: str | None) -> N | None:
    """Return the network that is meant, None where there is none.

    ``known`` are those that the project owns or shares, ``auto`` is the option. Raises Conflict,
    in Nova's words, where several could be meant.
    """
    if len(known) > 1 and not auto:
        raise Conflict("Multiple possible networks found, use a Network ID to be more specific.")
    if len(known) == 1:
        return known[0]
    return next((one for one in known if one.discovered and one.bridge == auto), None)
