"""The files of the configuration, as docs/deploy.md has them, for one machine."""

from __future__ import annotations

from collections.abc import Mapping

from identity.clouds import service_credentials
from launcher.embedded.settings import FLAVORS, render
from launcher.quickstart import bus, certificates, databases
from launcher.quickstart.machine import SHARED_MODE, Machine, Ports
from launcher.quickstart.memory import Memory

Sections = Mapping[str, Mapping[str, str]]

CLUSTERS = "compute.conf"
"""Written by ``micronova proxmox prepare``, or by hand."""

_HEAD = "# Written by `micronova quickstart`; the next run replaces changes."


NAMES = (
    *("micronova.conf", "conductor.conf", "api.conf", "placement.conf", "console.conf"),
    *("dashboard.conf", "identity.conf", "public.env", "placement.env", "dashboard.env"),
)
"""The files that are written."""


def texts(memory: Memory) -> dict[str, str]:
    """Return {file: text}, of all but the clusters."""
    machine = memory.machine
    ports, state = machine.ports, machine.state
    auth_url = f"{machine.url(ports.identity)}/v3"
    login = service_credentials(auth_url, {"micronova": memory.password("service")})
    console = f"{machine.host}:{ports.console}"
    urls = {
        "novnc_url": f"https://{console}/vnc_auto.html",
        "serial_url": f"wss://{console}/",
        "relay_url": f"wss://{console}/relay",
    }
    # Another cloud of this machine has the usual ports already.
    metrics: Sections = {} if ports == Ports() else {"metrics": {"port": "0"}}
    files: dict[str, Sections] = {
        "micronova.conf": {
            "DEFAULT": {"transport_url": bus.url(memory)},
            "keystone_authtoken": {
                **login,
                "www_authenticate_uri": auth_url,
                "service_token_roles": "service",
                "service_token_roles_required": "true",
            },
            "placement": {**login, "valid_interfaces": "internal,public"},
            "console": urls,
            "compute": {"console_ca_file": str(machine.folder / certificates.AUTHORITY)},
            **metrics,
        },
        "conductor.conf": {
            "database": {"connection": databases.url(memory, "micronova", "micronova")},
            "seed": {"flavors": ",".join(FLAVORS)},
        },
        "api.conf": {
            "database": {
                "reader_connection": databases.url(memory, databases.READER, "micronova")
            },
            "images": {
                "fetch_url": f"{machine.url(ports.public)}/image",
                "spool_dir": str(state / "spool"),
            },
        },
        "placement.conf": {
            "placement_database": {"connection": databases.url(memory, "placement", "placement")},
        },
        "console.conf": {
            "console": {
                **urls,
                "host": machine.address,
                "port": str(ports.console),
                "cert_file": str(machine.folder / certificates.CERTIFICATE),
                "key_file": str(machine.folder / certificates.KEY),
            },
        },
        "dashboard.conf": {
            "dashboard": {"auth_url": auth_url, "state_dir": str(state / "dashboard")},
            **metrics,
        },
        "identity.conf": {
            "identity_service": {
                "state_dir": str(state / "identity"),
                "host": machine.address,
                "port": str(ports.identity),
                "base_url": machine.url(ports.public),
                "placement_url": machine.url(ports.placement),
                "service_password": memory.password("service"),
            }
        },
    }
    return {name: render(sections, _HEAD) for name, sections in files.items()} | _settings(machine)


def _settings(machine: Machine) -> dict[str, str]:
    """Return the files that units read for gunicorn."""
    folder, ports = machine.folder, machine.ports
    bound = (("public", "api", ports.public), ("placement", "placement", ports.placement))
    found = {
        f"{name}.env": f"MICRONOVA_CONFIG={folder}/micronova.conf:{folder}/{file}.conf\n"
        f"MICRONOVA_BIND={machine.host}:{port}\n"
        for name, file, port in bound
    }
    return found | {"dashboard.env": f"MICRONOVA_BIND={machine.host}:{ports.dashboard}\n"}


def write(memory: Memory) -> list[str]:
    """Write all files; return the names of those that changed."""
    changed = []
    for name, text in texts(memory).items():
        memory.add(f"file {name}")
        if memory.machine.write(name, text, SHARED_MODE):
            changed.append(name)
    return changed


def of_the_doctor(machine: Machine) -> list[str]:
    """Return the files of all services, whose settings don't contradict each other."""
    names = ("micronova.conf", "conductor.conf", "api.conf", "placement.conf", CLUSTERS)
    return [str(machine.folder / name) for name in names]
