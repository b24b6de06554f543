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
    Reading("docs/scheduler.md", who="micronova", sentences=("micronova capacity --waiting",)),
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
            "pvesm status",
            "pveum user token modify <user> <token> --expire <time>",
        ),
        before=TINY,
        values=(
            *_OF_WEB,
            ("<user> <token>", "micronova@pve agent"),
            ("<time>", "$(date -d 'next year' +%s)"),
        ),
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
        "docs/troubleshoot.md",
        who="micronova",
        sentences=("pvesm status", "qm set <VMID> --protection 0"),
        before=f"""{TINY}
            qm set {_VMID} --protection 1
            openstack server delete web
            micronova explain web | grep 'qm set '{_VMID}' --protection 0'""",
        values=(("<VMID>", _VMID),),
        after="openstack server delete --wait web",
    ),
    Reading(
        "docs/volumes.md",
        who="micronova",
        sentences=("qm set <vmid> --delete unusedN",),
        before=f"""{TINY}
            qm snapshot {_VMID} theirs
            openstack server rebuild --wait web
            micronova explain web | grep 'left=.*a snapshot of VM .* names it'
            qm delsnapshot {_VMID} theirs
            qm config {_VMID} | grep unused0""",
        values=(("<vmid>", _VMID), ("unusedN", "unused0")),
        after=f"""
            ! qm config {_VMID} | grep unused0
            {NO_SERVERS}""",
    ),
    Reading(
        "docs/proxmox.md",
        who="micronova",
        sentences=("pvesm set <storage> --content images,iso,import",),
        before="""
            pvesm add nfs more --server 192.0.2.9 --export /more --path /mnt/pve/more \\
                --content images""",
        values=(("<storage>", "more"),),
        after="""
            pvesh get /storage/more | grep import
            pvesh delete /storage/more""",
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
    Reading(
        "docs/doctor.md",
        sentences=("qm config …",),
        before=TINY,
        values=(("…", _VMID),),
        after=NO_SERVERS,
    ),
    Reading(
        "docs/install.md",
        sentences=("micronova files FOLDER",),
        values=(("FOLDER", "files"),),
        after="ls files/micronova.conf.sample files/systemd/micronova-up.service",
    ),
    Reading(
        "docs/kubernetes.md",
        sentences=(
            "openstack application credential create k8s",
            "openstack network list",
            "openstack volume type list",
        ),
        after="openstack application credential delete k8s",
    ),
    Reading(
        "docs/kubernetes.md",
        who="micronova",
        sentences=("openstack port set --allowed-address ip-address=10.20.0.250 <port>",),
        before="""
            OS_CLOUD=micronova-demo openstack port create --network vmbr0 node
            ! OS_CLOUD=micronova-demo openstack port set \\
                --allowed-address ip-address=10.20.0.250 node""",
        values=(("<port>", "node"),),
        after="""
            openstack port show node -f value -c allowed_address_pairs | grep 10.20.0.250
            openstack port delete node""",
    ),
]
