"""Commands that stand in the pages' sentences, run on the embedded cloud of three nodes."""

from __future__ import annotations

from tests.functional.pages.reading import Reading
from tests.functional.pages.readings import (
    NO_SERVERS,
    NO_VOLUMES,
    REQUEST,
    SERVER,
    TINY,
    VOLUME_HOSTS,
)

HOST = ("<host>", "pve3")
_VMID = (
    "$(pvesh get /cluster/resources --type vm | python3 -c 'import json, sys;"
    ' print(*[one["vmid"] for one in json.load(sys.stdin) if one["name"].startswith("web")])\')'
)
_OF_WEB = (
    ("<request ID>", REQUEST),
    ("<request id>", REQUEST),
    ("req-…", REQUEST),
    ("<server or request ID>", "web"),
    ("<server ID> …", "$(openstack server show web -f value -c id) --size 1 beside"),
    ("<server ID>", "$(openstack server show web -f value -c id)"),
    ("<UUID>", "$(openstack server show web -f value -c id)"),
    SERVER,
    (
        "<host> cinder-volume",
        f"{VOLUME_HOSTS} | head -1) cinder-volume",
    ),
    HOST,
    ("HOST", "pve3"),
    ("<why>", "maintenance"),
)
SENTENCES = [
    Reading("docs/doctor.md", who="micronova", sentences=("micronova node list",)),
    Reading(
        "docs/operate.md",
        who="micronova",
        sentences=(
            "micronova server mark <server>",
            "micronova audit",
            "micronova capacity --without HOST",
            "micronova explain <UUID>",
            "micronova explain <request ID>",
            "micronova explain <server>",
            "micronova explain req-…",
            "micronova metrics",
            "micronova queue list",
            "micronova rebalance --plan",
            "micronova rebalance --apply",
            "openstack compute service list",
            "openstack console url show --novnc web",
            "openstack server list --all-projects --host pve3",
            "openstack server migration list --type evacuation",
        ),
        before=f"{TINY}\nqm set {_VMID} --description lost",
        values=_OF_WEB,
        after=NO_SERVERS,
    ),
    Reading(
        "docs/operate.md",
        who="micronova",
        sentences=(
            "micronova node disable <host>",
            "openstack compute service set --disable --disable-reason maintenance "
            "pve3 nova-compute",
            "openstack compute service set --down <host> nova-compute",
        ),
        values=_OF_WEB,
        after="""
            openstack compute service set --up pve3 nova-compute
            micronova node enable pve3""",
    ),
    Reading(
        "docs/monitor.md",
        who="micronova",
        sentences=(
            "micronova audit",
            "micronova audit --last --long",
            "micronova capacity --without <host>",
            "micronova compute service list",
            "micronova db check",
            "micronova doctor",
            "micronova explain <server or request ID>",
            "micronova explain <server>",
            "micronova metrics",
            "micronova node list",
            "micronova orphan list",
            "micronova orphan reap --yes",
            "micronova vmid list --state quarantined",
        ),
        before=TINY,
        values=_OF_WEB,
        after=NO_SERVERS,
    ),
    Reading(
        "docs/troubleshoot.md",
        who="micronova",
        sentences=(
            "micronova audit",
            "micronova compute service list",
            "micronova db check",
            "micronova volume message list",
            "openstack volume message list",
            "openstack --os-volume-api-version 3.5 volume message list",
            "openstack versions show",
            "openstack volume create --hint local_to_instance=<server ID> …",
            "openstack server reboot --hard <server>",
            "openstack server rebuild <server>",
        ),
        before=TINY,
        # it is printed as what is answered so
        values=(("openstack volume message", "! openstack volume message"), *_OF_WEB),
        after=f"{NO_SERVERS}\n{NO_VOLUMES}",
    ),
    Reading(
        "docs/troubleshoot.md",
        who="micronova",
        sentences=("micronova server retry <server>", "micronova server mark <server>"),
        before=f"""{TINY}
            openstack server set --auto-approve --state error web
            qm set {_VMID} --description lost""",
        values=_OF_WEB,
        after=NO_SERVERS,
    ),
    Reading(
        "docs/troubleshoot.md",
        who="micronova",
        sentences=("micronova server forget <server>",),
        before=f"""{TINY}
            openstack server stop web
            echo {_VMID} > vmid
            qm set $(cat vmid) --description theirs \\
                --smbios1 uuid=11111111-2222-4333-8444-555555555555""",
        values=_OF_WEB,
        after="""
            qm destroy $(cat vmid) --purge
            for drive in $(pvesh get /nodes/pve1/storage/shared/content --content iso | \\
                grep -o 'shared:iso/micronova[^"]*'); do pvesm free $drive; done""",
    ),
    Reading(
        "docs/proxmox.md",
        who="micronova",
        sentences=(
            "micronova audit",
            "micronova capacity --without <host>",
            "micronova rebalance --plan",
            "micronova vmid list",
        ),
        values=_OF_WEB,
    ),
    Reading("docs/development/new-proxmox-call.md", sentences=("micronova proxmox prepare",)),
]
