"""What is run of the pages on a cluster that the pages' own lines prepare, with their settings.

``{name}`` stands for what only the running test knows: see ``tests.functional.pages.site``.
"""

from __future__ import annotations

from tests.functional.pages.reading import Reading

_NO_SERVERS = "openstack server delete --wait $(openstack server list -f value -c ID)"
_TINY = "openstack server create --image cirros --flavor m1.tiny"

# --- the cluster, its token, its worker, in this order

SIMULATOR = Reading(
    "docs/simulator.md",
    ("python -m simulator",),
    language="text",
    values=(
        *(("[", ""), ("]", ""), ("python ", "exec {python} ")),
        *(("DIR", "{simulator}"), (" M", " 1"), (" N", " 3"), (" K", " 2"), (" H", " 127.0.0.1")),
        *(
            (" P\n", " 0 "),
            (" P ", " 0 "),
            (" S", " 50"),
            # tests/functional/cli/test_first_real_server.py begins with a bare cluster
            (" --unprepared", ""),
            ("8.3|8.4|9.0|", ""),
            (" F", " {simulator}.token"),
        ),
    ),
)
_MICRONOVA = (("/etc/micronova", "{etc}"),)
TOKEN = Reading(
    "docs/proxmox.md",
    ("pveum user token add",),
    before="""
        pvesh delete /access/users/micronova@pve
        for role in $(pvesh get /access/roles | grep -o '"Micronova[A-Za-z]*"' | tr -d '"'); \\
                do pvesh delete /access/roles/$role; done
        pvesm add zfspool local-zfs --pool rpool/data --content images
        pvesm add nfs fast --server 192.0.2.9 --export /fast --path /mnt/pve/fast --content images
        pvesh set /cluster/firewall/options --enable 0""",
)
TOKEN_FILE = Reading(
    "docs/proxmox.md",
    ("install -m 600",),
    values=(*_MICRONOVA, ("-o micronova", "-o $(id -un)"), ("<secret>", "{secret}")),
    after="install -D -m 600 {etc}/pve.token .config/micronova/proxmox.token",
)
OPTIONAL = Reading(
    "docs/proxmox.md",
    sentences=(
        "micronova proxmox prepare --print --with passwords --with steering --pve 8.4",
        "micronova doctor",
    ),
    values=(
        ("--pve 8.4", "--pve 9.2 | grep -v 'token add' > more; bash -e more"),
        ("micronova doctor", "micronova doctor --config-file {etc}/micronova.conf"),
    ),
)
FIREWALL = Reading(
    "docs/proxmox.md",
    ("/cluster/firewall/options",),
    after="pvesh get /cluster/firewall/options | grep '\"enable\": 1'",
)
WORKER = Reading(
    "docs/proxmox.md",
    ("[proxmox:berlin]",),
    language="ini",
    values=(
        *_MICRONOVA,
        ("https://pve1.example.org:8006", "{pve1}"),
        ("https://pve2.example.org:8006", "{pve2}"),
    ),
)
UP = Reading(
    "README.md",
    ("micronova proxmox prepare",),
    values=(
        ("micronova up --demo", "exec {bin}/micronova up"),
        ("https://pve1.example.org:8006", "{pve1}"),
    ),
)

VNETS = Reading(
    "docs/networks.md",
    ("tenant_vnets = *:tenants",),
    language="ini",
    who="micronova",
    before="openstack network create --provider-network-type vxlan wide",
    after="""
        openstack network show wide -f value -c provider:segmentation_id | grep -E '^1[0-9]{4}$'
        pvesh get /cluster/sdn/vnets | grep '"zone": "tenants"'
        openstack network delete wide""",
)
ZONE = Reading(
    "docs/networks.md",
    ("pvesh create /cluster/sdn/zones",),
)
MISSING = Reading(
    "docs/networks.md",
    sentences=("micronova doctor",),
    values=(
        (
            "micronova doctor",
            "micronova doctor --config-file {etc}/micronova.conf --fix-lines > fix || bash -e fix",
        ),
    ),
    after="micronova doctor --config-file {etc}/micronova.conf",
)
PREPARED = (SIMULATOR, TOKEN, TOKEN_FILE, FIREWALL, WORKER, OPTIONAL, ZONE, MISSING, UP)

# --- settings of the cloud on it; what follows them is run there

#: what all VMs of the cluster have
_CONFIGS = (
    "for id in $(pvesh get /cluster/resources --type vm |"
    " grep -o '\"vmid\": [0-9]*' | cut -d' ' -f2);"
    " do qm config $id; done"
)
SETTINGS = [
    Reading(
        "docs/networks.md",
        ("vlans = vmbr1:7",),
        language="ini",
        who="micronova",
        values=(("vmbr1", "vmbr0"),),
        before=f"{_TINY} --network vmbr0 --wait tagged",
        after=f"""
            openstack network show vmbr0 -f value -c provider:segmentation_id | grep -x 7
            {_CONFIGS} | grep 'bridge=vmbr0[^"]*tag=7'
            {_NO_SERVERS}""",
    ),
    Reading(
        "docs/networks.md",
        ("tenant_vlans = vmbr1:1000-1999",),
        language="ini",
        who="micronova",
        values=(("vmbr1", "vmbr0"),),
        before=f"""
            OS_CLOUD=micronova-demo openstack network create mine
            OS_CLOUD=micronova-demo openstack subnet create --network mine \\
                --subnet-range 192.168.7.0/24 mine
            OS_CLOUD=micronova-demo {_TINY} --network mine --wait web""",
        after=f"""
            openstack network show mine -f value -c provider:physical_network | grep -x vmbr0
            openstack network show mine -f value -c provider:segmentation_id | grep -x 1000
            {_CONFIGS} | grep 'bridge=vmbr0[^"]*tag=1000'
            {_NO_SERVERS}
            openstack network delete mine""",
    ),
    Reading(
        "docs/networks.md",
        ("subnets = vmbr0=10.20.0.0/16",),
        language="ini",
        who="micronova",
        before=f"{_TINY} --network vmbr0 --wait web",
        after=f"""
            openstack server show web -f value -c addresses | grep -E "10\\.20\\.1\\.[0-9]+"
            openstack subnet list --network vmbr0 --long -f value -c 'Name Servers' | \\
                grep 192.0.2.54
            {_NO_SERVERS}""",
    ),
    Reading(
        "docs/images.md",
        ("properties = windows-*",),
        language="ini",
        after="""
            openstack image show debian-12 -f value -c properties | \\
                grep "'hw_firmware_type': 'uefi'"
            openstack image show debian-12 -f value -c properties | grep "'os_distro': 'debian'"
            openstack image show cirros -f value -c properties | grep -v hw_firmware_type""",
    ),
    VNETS,
]
"""`ini` blocks with what follows from them."""
LOGS = Reading("docs/monitor.md", ("use_json = true",), language="ini")
TRACES = Reading(
    "docs/tracing.md",
    ("endpoint = http://collector:4318",),
    language="ini",
    values=(("http://collector:4318", "{collector}"),),
)
TRACE = Reading("docs/tracing.md", ("compute_create_vm",), language="text")
NOTIFICATIONS = Reading(
    "docs/notifications.md",
    ("driver = messagingv2",),
    language="ini",
    values=(("#transport_url = rabbit://…", "transport_url = {broker}"),),
)
RULES = Reading(
    "docs/proxmox.md",
    ("write_affinity_rules = true",),
    language="ini",
    values=(("[proxmox:one]", "[proxmox:proxmox]"),),
)
"""Whose effect is seen by MicronovaHA's reading."""
TOGETHER = [*SETTINGS, LOGS, TRACES, NOTIFICATIONS, RULES]
"""One cloud is started with all of them."""

SECOND = [
    Reading(
        "docs/proxmox.md",
        ("role add MicronovaHA",),
        before="openstack server group create --policy anti-affinity apart",
        after=f"""
            {_TINY} --network vmbr0 \\
                --hint group=$(openstack server group show apart -f value -c id) --wait one
            {_TINY} --network vmbr0 \\
                --hint group=$(openstack server group show apart -f value -c id) --wait two
            pvesh get /cluster/ha/rules | grep micronova-
            {_NO_SERVERS}
            openstack server group delete apart""",
    ),
    Reading(
        "docs/flavors.md",
        ("/mapping/pci",),
        after="""
            pvesh get /access/permissions --userid 'micronova@pve!agent' --path /mapping/pci | \\
                grep Mapping.Use""",
    ),
    Reading(
        "docs/proxmox.md",
        ("qm unlock",),
        before="""
            pvesh create /nodes/pve1/qemu --vmid 501 --name half --memory 512 --scsi0 shared:1
            qm set 501 --lock create""",
        values=(("<vmid>", "501"),),
        after="! pvesh get /nodes/pve1/qemu/501/config",
    ),
    Reading(
        "docs/volumes.md",
        ("volume set --type fast",),
        before="openstack volume create --size 1 --type shared data",
        after="""
            openstack volume show data -f value -c type | grep -x fast
            openstack volume delete data""",
    ),
    Reading(
        "docs/doctor.md",
        ("micronova doctor --json",),
        who="micronova",
        before="micronova doctor --fix-lines > fix || bash -e fix",
        sentences=("micronova doctor",),
    ),
    Reading(
        "docs/operate.md",
        who="micronova",
        sentences=("openstack compute service delete <id>",),
        # one whose next heartbeat registers it again
        values=(
            ("<id>", "$(openstack compute service list --service nova-scheduler -f value -c ID)"),
        ),
    ),
]
