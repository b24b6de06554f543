"""The files of the configuration, as docs/deploy.md has them, for one machine."""

from __future__ import annotations

from collections.abc import Mapping

from common.rpc import senders
from identity.clouds import service_credentials
from identity.layout import SEPARATE
from launcher.embedded.settings import FLAVORS, render
from launcher.quickstart import bus, certificates, databases
from launcher.quickstart.machine import ROOT_MODE, SHARED_MODE, Machine, Ports
from launcher.quickstart.memory import Memory

Sections = Mapping[str, Mapping[str, str]]

CLUSTERS = "compute.conf"
"""Written by ``micronova proxmox prepare``, or by hand."""
AUDIT_LOG = "log/audit.log"
"""In the folder of what services write: who asked the APIs for what."""
OWNERS = "owners.conf"
"""The logins of those who change tables: no service's, and root's alone."""

_HEAD = "# Written by `micronova quickstart`; the next run replaces changes."


NAMES = (
    *("micronova.conf", "conductor.conf", "scheduler.conf", "agents.conf", "api.conf"),
    *("placement.conf", "console.conf"),
    *("dashboard.conf", "identity.conf", "public.env", "placement.env", "dashboard.env"),
    *("scheduler.env", "compute.env", OWNERS),
)
"""The files that are written."""


def texts(memory: Memory) -> dict[str, str]:
    """Return {file: text}, of all but the clusters."""
    machine = memory.machine
    ports, state = machine.ports, machine.state
    auth_url = f"{machine.url(ports.identity)}/v3"
    logins = {user: _login(memory, user, auth_url) for user in SEPARATE}
    console = f"{machine.host}:{ports.console}"
    urls = {
        "novnc_url": f"https://{console}/vnc_auto.html",
        "serial_url": f"wss://{console}/",
        "relay_url": f"wss://{console}/relay",
    }
    # What changes something, and what is refused.
    audit = {"file": str(state / AUDIT_LOG), "ignore_req_list": "GET,HEAD"}
    # Another cloud of this machine has the usual ports already.
    metrics: Sections = {} if ports == Ports() else {"metrics": {"port": "0"}}
    files: dict[str, Sections] = {
        "micronova.conf": {
            "keystone_authtoken": {
                "www_authenticate_uri": auth_url,
                "service_token_roles": "service",
                "service_token_roles_required": "true",
            },
            "placement": {"valid_interfaces": "internal,public"},
            "console": urls,
            **metrics,
        },
        "conductor.conf": {
            **_bus(memory, senders.CONDUCTOR),
            "placement": logins["micronova-conductor"],
            "database": {"connection": databases.url(memory, databases.WRITER, "micronova")},
            "seed": {"flavors": ",".join(FLAVORS)},
        },
        "scheduler.conf": {
            **_bus(memory, senders.SCHEDULER),
            "placement": logins["micronova-scheduler"],
        },
        "agents.conf": {
            **_bus(memory, senders.COMPUTE),
            "placement": logins["micronova-compute"],
            "compute": {
                "worker": bus.worker(memory),
                "console_ca_file": str(machine.folder / certificates.AUTHORITY),
            },
        },
        "api.conf": {
            **_bus(memory, senders.API),
            "keystone_authtoken": logins["micronova-api"],
            # to ask whether projects exist
            "placement": logins["micronova-api"],
            "database": {
                "reader_connection": databases.url(memory, databases.READER, "micronova")
            },
            "images": {
                "fetch_url": f"{machine.url(ports.public)}/image",
                "spool_dir": str(state / "spool"),
            },
            "audit_log": audit,
        },
        "placement.conf": {
            "keystone_authtoken": logins["micronova-placement"],
            "placement_database": {
                "connection": databases.url(memory, databases.PLACEMENT, "placement")
            },
            "audit_log": audit,
        },
        OWNERS: {
            section: {"connection": databases.url(memory, databases.DATABASES[name], name)}
            for section, name in (("database", "micronova"), ("placement_database", "placement"))
        },
        "console.conf": {
            **_bus(memory, senders.CONSOLE),
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
                "service_passwords": ",".join(
                    f"{user}:{memory.password(user)}" for user in SEPARATE
                ),
            }
        },
    }
    return {name: render(sections, _HEAD) for name, sections in files.items()} | _settings(machine)


def _login(memory: Memory, user: str, auth_url: str) -> dict[str, str]:
    login = service_credentials(auth_url, {user: memory.password(user)}, user=user)
    # The doctor reads all files: another login's scope would remain.
    return {"system_scope": "", **login}


def _bus(memory: Memory, role: str) -> Sections:
    return {"DEFAULT": {"transport_url": bus.url(memory, role)}}


def _settings(machine: Machine) -> dict[str, str]:
    """Return the files that units read for gunicorn."""
    folder, ports = machine.folder, machine.ports
    bound = (("public", "api", ports.public), ("placement", "placement", ports.placement))
    found = {
        f"{name}.env": f"MICRONOVA_CONFIG={folder}/micronova.conf:{folder}/{file}.conf\n"
        f"MICRONOVA_BIND={machine.host}:{port}\n"
        for name, file, port in bound
    }
    for name, files in (("scheduler", ("scheduler",)), ("compute", ("agents", "compute"))):
        read = ":".join(f"{folder}/{file}.conf" for file in ("micronova", *files))
        found[f"{name}.env"] = f"MICRONOVA_CONFIG={read}\n"
    return found | {"dashboard.env": f"MICRONOVA_BIND={machine.host}:{ports.dashboard}\n"}


def write(memory: Memory) -> list[str]:
    """Write all files; return the names of those that changed."""
    changed = []
    for name, text in texts(memory).items():
        memory.add(f"file {name}")
        if memory.machine.write(name, text, ROOT_MODE if name == OWNERS else SHARED_MODE):
            changed.append(name)
    return changed


def of_the_doctor(machine: Machine) -> list[str]:
    """Return the files of all services, whose settings don't contradict each other."""
    # Of the last one are the logins that the doctor uses.
    names = ("micronova.conf", "api.conf", "placement.conf", CLUSTERS, "conductor.conf")
    return [str(machine.folder / name) for name in names]
