"""Options of the Proxmox VE driver, and the checked settings of each cluster."""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from oslo_config import cfg

from common.errors import ConfigurationError

DEFAULT_PORT = 8006
#: instead of the URL of a web interface
NO_LINK = "none"

_CLUSTERS = [
    cfg.ListOpt(
        "clusters",
        default=[],
        help="Names of the clusters of this worker's agents. Each has a group [proxmox:<name>]. "
        "The name is part of the hosts' identity: it must never change.",
    ),
]

CLUSTER_OPTIONS = [
    cfg.ListOpt(
        "endpoints",
        default=[],
        help="URLs of the cluster's API, e.g. https://pve1.example.org:8006; several are used in "
        "turn, and a failing one is skipped for a while.",
    ),
    cfg.StrOpt(
        "token_file",
        help="File with the API token as user@realm!name=secret, readable by its owner only. With "
        "one token per worker, each task shows which worker began it.",
    ),
    cfg.StrOpt(
        "ca_file", help="CA certificates to check the endpoints with; default: the system's."
    ),
    cfg.BoolOpt(
        "insecure",
        default=False,
        help="Don't check the endpoints' certificates. An attacker in between can read the token.",
    ),
    cfg.StrOpt(
        "web_url",
        help="URL of the cluster's web interface, as administrators reach it: the dashboard's "
        "pages of nodes have a link to it. Default: the first of the endpoints; none: no link.",
    ),
    cfg.StrOpt("availability_zone", help="Zone of the cluster's hosts; default: [compute]'s."),
    cfg.StrOpt(
        "vm_storage",
        help="Storage for root disks; default: the largest one with content 'images', shared "
        "ones before local ones. From a local storage a server can be migrated unless its "
        "disk is a linked clone; its disk is then copied.",
    ),
    cfg.StrOpt(
        "iso_storage",
        help="Storage for config drives; default: the largest one with content 'iso', shared "
        "ones before local ones. From a local storage it can't be migrated by others than "
        "micronova, which takes it out before.",
    ),
    cfg.StrOpt(
        "linked_clones",
        default="shared",
        choices=[
            ("shared", "on shared storage only; disks on a node's own storage are whole"),
            ("always", "on a node's own storage too; those servers can't be migrated"),
            ("never", "nowhere; every disk is whole"),
        ],
        help="Where root disks are linked clones of their image's template. A linked clone is "
        "created in a second and takes only the space that is written, but depends on the "
        "template. A full disk takes the time to copy the image for each server, and its "
        "full size at once unless the storage is thin.",
    ),
    cfg.ListOpt("hosts", default=[], help="Nodes whose agents this worker carries; default: all."),
    cfg.StrOpt(
        "host_prefix",
        default="",
        help="Prefix before a node's name in the host's name; needed if two clusters have nodes "
        "with the same name. It must never change.",
    ),
    cfg.IntOpt(
        "vmid_low",
        default=100_000,
        min=100,
        max=999_999_999,
        help="First VMID of the band that only this cloud uses. Clusters that share storage need "
        "bands that don't overlap.",
    ),
    cfg.IntOpt(
        "vmid_high", default=199_999, min=100, max=999_999_999, help="Last VMID of the band."
    ),
    cfg.StrOpt(
        "cpu_type",
        default="x86-64-v2-AES",
        help="Processor type of guests. 'host' is the fastest, and lets guests migrate only to "
        "nodes with the same processor.",
    ),
    cfg.IntOpt(
        "local_storage_slots",
        default=4,
        min=1,
        max=64,
        help="Operations that may allocate on one node's local storage at the same time, at the "
        "start. Proxmox VE gives up on a storage lock after 10 seconds, so the others queue "
        "here; the number then adapts to how long they take.",
    ),
    cfg.IntOpt(
        "shared_storage_slots",
        default=2,
        min=1,
        max=64,
        help="The same for one shared storage, for all nodes together.",
    ),
    cfg.IntOpt(
        "most_storage_slots",
        default=32,
        min=0,
        max=256,
        help="The most slots that a storage may get. 0: the number at the start is fixed.",
    ),
    cfg.FloatOpt(
        "restart_lock_seconds",
        default=30.0,
        min=0.0,
        max=300.0,
        help="Seconds for which a node holds the lock of a VM that was stopped and started again "
        "at once: Proxmox VE's clean-up waits that long. Calls that need the lock are delayed "
        "until it is about to be released. 0: they are not delayed.",
    ),
    cfg.BoolOpt(
        "write_affinity_rules",
        default=False,
        help="Write strict server groups as affinity rules of high availability, which Proxmox "
        "VE has since 9.0; the token needs Sys.Console on /. Their VMs become resources in "
        "state 'ignored': the rule applies to those that an operator sets to 'started'. "
        "'micronova explain' shows what can't be written; it fails no build.",
    ),
    cfg.IntOpt(
        "timeout_seconds",
        default=40,
        min=35,
        max=600,
        help="Seconds that a call may take. A node proxies to another one for up to 30 seconds, "
        "so a lower value would give up on calls that succeed.",
    ),
    cfg.IntOpt(
        "connect_seconds", default=5, min=1, max=60, help="Seconds that connecting may take."
    ),
    cfg.IntOpt(
        "blind_seconds",
        default=90,
        min=1,
        max=3600,
        help="Seconds that a node's tasks may be unreadable before the outcome of a task counts "
        "as unknown, and is probed.",
    ),
]

_TOKEN = re.compile(r"(?P<user>[^\s!@]+@[^\s!@]+)!(?P<name>[A-Za-z][\w.-]+)=(?P<secret>\S+)")


@dataclass(frozen=True)
class Token:
    """An API token; its repr hides the secret."""

    user: str
    name: str
    secret: str = field(repr=False)

    @property
    def id(self) -> str:
        """The token's id in task ids and permissions."""
        return f"{self.user}!{self.name}"


@dataclass(frozen=True)
class ClusterSettings:
    """One cluster's settings."""

    name: str
    endpoints: tuple[tuple[str, int], ...]
    token: Token
    verify: bool | str
    availability_zone: str | None
    vm_storage: str | None
    iso_storage: str | None
    linked_clones: str
    hosts: frozenset[str]
    host_prefix: str
    vmid_low: int
    vmid_high: int
    cpu_type: str
    local_storage_slots: int
    shared_storage_slots: int
    most_storage_slots: int
    restart_lock_seconds: float
    write_affinity_rules: bool
    timeout_seconds: int
    connect_seconds: int
    blind_seconds: int
    web_url: str = ""
    """Of the web interface; empty: there is no link to it."""

    def host(self, node: str) -> str:
        """Return the name of a node's compute host."""
        return f"{self.host_prefix}{node}"

    def in_band(self, vmid: int) -> bool:
        """Return whether a VMID is in the cloud's band."""
        return self.vmid_low <= vmid <= self.vmid_high


def register(conf: cfg.ConfigOpts) -> None:
    """Declare ``[proxmox]``; idempotent. The clusters' groups are known only once it is read."""
    conf.register_opts(_CLUSTERS, group="proxmox")


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample configuration; a cluster's group stands for all."""
    return [("proxmox", list(_CLUSTERS)), ("proxmox:<name>", list(CLUSTER_OPTIONS))]


def clusters(conf: cfg.ConfigOpts) -> list[ClusterSettings]:
    """Return all clusters. Raises ConfigurationError, one line, for missing or wrong options."""
    if not conf.proxmox.clusters:
        raise ConfigurationError("[proxmox] clusters names no cluster.")
    found = [_cluster(conf, name) for name in conf.proxmox.clusters]
    if len({one.name for one in found}) < len(found):
        raise ConfigurationError("[proxmox] clusters names a cluster twice.")
    return found


def _cluster(conf: cfg.ConfigOpts, name: str) -> ClusterSettings:
    group = f"proxmox:{name}"
    conf.register_opts(CLUSTER_OPTIONS, group=group)
    try:
        options = conf[group]
        values = {option.dest: options[option.dest] for option in CLUSTER_OPTIONS}
    except (cfg.Error, ValueError) as error:
        raise ConfigurationError(f"[{group}] {error}") from error
    if not values["endpoints"]:
        raise ConfigurationError(f"[{group}] endpoints is empty.")
    if values["vmid_low"] > values["vmid_high"]:
        raise ConfigurationError(f"[{group}] vmid_low is above vmid_high.")
    if not values["token_file"]:
        raise ConfigurationError(f"[{group}] token_file is not set.")
    insecure, ca_file = values.pop("insecure"), values.pop("ca_file")
    if ca_file and not Path(ca_file).is_file():
        raise ConfigurationError(f"[{group}] ca_file {ca_file} is no file.")
    endpoints = tuple(_endpoint(group, url) for url in values.pop("endpoints"))
    return ClusterSettings(
        name=name,
        endpoints=endpoints,
        web_url=_web_url(group, values.pop("web_url"), endpoints[0]),
        token=read_token(Path(values.pop("token_file")), group),
        verify=False if insecure else (ca_file or True),
        hosts=frozenset(values.pop("hosts")),
        **values,
    )


def _web_url(group: str, given: str | None, first: tuple[str, int]) -> str:
    if given == NO_LINK:
        return ""
    if given is None:
        host = f"[{first[0]}]" if ":" in first[0] else first[0]
        return f"https://{host}:{first[1]}"
    parts = urlsplit(given)
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.username is not None:
        raise ConfigurationError(f"[{group}] web_url: {given} is no URL without a user.")
    return given.rstrip("/")


def _endpoint(group: str, url: str) -> tuple[str, int]:
    parts = urlsplit(url if "//" in url else f"https://{url}")
    try:
        port = parts.port or DEFAULT_PORT
    except ValueError as error:
        raise ConfigurationError(f"[{group}] endpoints: {url} has no valid port.") from error
    if parts.scheme != "https" or not parts.hostname:
        raise ConfigurationError(f"[{group}] endpoints: {url} is no https URL.")
    return parts.hostname, port


def read_token(path: Path, group: str) -> Token:
    """Return the token in a file. Raises ConfigurationError; no message has the secret."""
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"[{group}] token_file {path} can't be read.") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigurationError(
            f"[{group}] token_file {path} can be read by others; run: chmod 600 {path}"
        )
    match = _TOKEN.fullmatch(text)
    if match is None:
        raise ConfigurationError(f"[{group}] token_file {path} is not user@realm!name=secret.")
    return Token(match["user"], match["name"], match["secret"])
