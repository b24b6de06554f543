"""The options of `micronova up`, and the configuration file made of them.

The file is the cloud process's only configuration: the services read it in the same way as an
operator's file for separate processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from oslo_config import cfg

from identity.private_file import write_private

OPTIONS = [
    cfg.StrOpt("base_url", help="URL of the embedded cloud's APIs."),
    cfg.IntOpt("hosts", default=1, min=1, help="Hosts that must be up before the cloud is ready."),
    cfg.ListOpt(
        "joined_urls",
        help="Where the APIs are and were: the cloud joins the catalog of a Keystone that it "
        "doesn't run. Empty: it runs its own.",
    ),
]

FLAVORS = (
    "1:m1.tiny:1:512:1",
    "2:m1.small:1:2048:20",
    "3:m1.medium:2:4096:40",
    "4:m1.large:4:8192:80",
    "5:m1.xlarge:8:16384:160",
    "42:m1.nano:1:128:1",
    "84:m1.micro:1:192:1",
    "c1:cirros256:1:256:1",
)
"""ID:NAME:VCPUS:MEMORY_MIB:DISK_GIB, the flavors of OpenStack's development clouds."""


Sections = dict[str, dict[str, str]]
"""Options by section; an option with several values has a line for each."""


@dataclass(frozen=True)
class JoinedKeystone:
    """A Keystone that exists, and the login of the services' user there."""

    auth_url: str
    user: str
    password_file: Path


@dataclass(frozen=True)
class Settings:
    """The options of `micronova up`."""

    state_dir: Path
    host: str
    port: int
    nodes: int
    clusters: int
    driver: str
    speed: float
    proxmox: tuple[str, ...] = ()
    """URLs of a real cluster's nodes; empty: the simulator."""
    bridges: int = 1
    """Bridges of each simulated node, a network each."""
    token_file: Path | None = None
    ca_file: Path | None = None
    region: str | None = None
    """The region's name; None: that of the first start."""
    keystone: JoinedKeystone | None = None
    """The Keystone whose catalog the cloud joins; None: it runs its own."""
    chosen: Sections = field(default_factory=dict)
    """Options that were given by name: they replace what is made up."""

    @property
    def simulated(self) -> bool:
        """Whether the simulator runs."""
        return self.driver == "proxmox" and not self.proxmox

    @property
    def advertised_host(self) -> str:
        """The name that clients use."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)

    def url(self, port: int) -> str:
        """Return the base URL of a port, as clients use it."""
        host = self.advertised_host
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def register(conf: cfg.ConfigOpts) -> None:
    """Declare the options that `micronova up` writes for itself."""
    conf.register_opts(OPTIONS, group="embedded")


def write_configuration(settings: Settings, content: Sections) -> Path:
    """Write the configuration file, readable by its owner alone, and return its path."""
    path = settings.state_dir / "micronova.conf"
    write_private(path, render(content))
    return path


def sections(
    settings: Settings,
    base_url: str,
    console_url: str,
    credentials: Mapping[str, str],
    driver: Sections,
    hosts: int,
    metrics_port: int,
    joined_urls: Sequence[str] = (),
) -> Sections:
    """Return the configuration as {section: {option: value}}.

    `credentials` are keystoneauth1's login options of the services' user, `driver` is what the
    driver needs, `hosts` how many hosts must be up before the cloud is ready, `metrics_port` where
    metrics are answered, `joined_urls` the option of that name.
    """
    state = settings.state_dir
    database = f"sqlite:///{state}/cloud.sqlite"
    made: Sections = {
        "DEFAULT": {"transport_url": "micronova-local://embedded"},
        "embedded": {
            "base_url": base_url,
            "hosts": str(hosts),
            "joined_urls": ",".join(joined_urls),
        },
        "database": {"connection": database, "reader_connection": database},
        "placement_database": {"connection": f"sqlite:///{state}/placement.sqlite"},
        "keystone_authtoken": {
            **credentials,
            "www_authenticate_uri": credentials["auth_url"],
            "service_token_roles": "service",
            "service_token_roles_required": "true",
        },
        "placement": {**credentials, "endpoint_override": f"{base_url}/placement"},
        "conductor": {"name": "embedded"},
        "images": {"fetch_url": f"{base_url}/image", "spool_dir": f"{state}/spool"},
        "console": {
            "novnc_url": f"{console_url}/vnc_auto.html",
            "serial_url": f"{console_url.replace('http', 'ws', 1)}/",
            "relay_url": f"{console_url.replace('http', 'ws', 1)}/relay",
        },
        "dashboard": {
            "auth_url": credentials["auth_url"],
            "region_name": credentials["region_name"],
            "state_dir": f"{state}/dashboard",
        },
        "metrics": {"port": str(metrics_port)},
        "scheduler": {"name": "embedded"},
        "compute": {"worker": "embedded", "driver": settings.driver},
        "seed": {"flavors": ",".join(FLAVORS)},
    }
    if not settings.proxmox:
        # Hosts without a hypervisor have the first bridge only.
        bridges = range(settings.bridges if settings.simulated else 1)
        subnets = ",".join(f"vmbr{number}=10.{20 + number}.0.0/16" for number in bridges)
        made["networks"] = {"subnets": subnets, "tenant_vlans": "vmbr0:1000-1999"}
    for more in (driver, settings.chosen):
        for section, values in more.items():
            made.setdefault(section, {}).update(values)
    made["metrics"]["port"] = str(metrics_port)
    return made


_HEAD = "# Written by `micronova up` at every start; changes here are lost."


def render(made: Mapping[str, Mapping[str, str]], head: str = _HEAD) -> str:
    """Return the text of a configuration file with these sections, below a line about it."""
    lines = [head]
    for section, values in made.items():
        lines += ["", f"[{section}]"]
        # oslo.config would take "$" in a value for a reference.
        lines += [
            f"{name} = {one.replace('$', '$$')}"
            for name, value in values.items()
            for one in value.split("\n")
        ]
    return "\n".join(lines) + "\n"
