"""What is run of the pages, on the embedded cloud with three simulated nodes."""

from __future__ import annotations

from tests.functional.pages.reading import LAST, Reading

NO_SERVERS = "openstack server delete --wait $(openstack server list -f value -c ID)"
NO_VOLUMES = "openstack volume delete $(openstack volume list -f value -c ID)"
WEB = "openstack server create --image debian-12 --flavor m1.small --wait web"
TINY = "openstack server create --image cirros --flavor m1.tiny --wait web"
SERVER = ("<server>", "web")
REQUEST = "$(micronova explain web | grep -om1 'req-[0-9a-f-]*')"
VOLUME_HOSTS = "$(openstack volume service list --service cinder-volume -f value -c Host"


def _printed(name: str) -> str:
    """A field of the table that the last command printed."""
    return f"$(sed -nE 's/^\\| {name} +\\| (\\S+) .*/\\1/p' {LAST})"


def _as(user: str) -> str:
    """What has a command be of another user, whose password and project are named alike."""
    url = "$(openstack configuration show --unmask -f value -c auth.auth_url)"
    words = f"OS_AUTH_URL={url} OS_USERNAME={user} OS_PASSWORD={user} OS_PROJECT_NAME={user}"
    default = "OS_USER_DOMAIN_NAME=Default OS_PROJECT_DOMAIN_NAME=Default"
    return f"env -u OS_CLOUD -u OS_CLIENT_CONFIG_FILE {words} {default}"


_THEIRS = """
    OS_CLOUD=micronova openstack project create theirs
    OS_CLOUD=micronova openstack user create --password theirs theirs
    OS_CLOUD=micronova openstack role add --user theirs --project theirs member"""
_NO_THEIRS = """
    OS_CLOUD=micronova openstack user delete theirs
    OS_CLOUD=micronova openstack project delete theirs"""

NETWORKS = [
    Reading(
        "docs/networks.md",
        who="micronova",
        sentences=("micronova doctor", "openstack default security group rule create"),
        values=(("rule create", "rule create --protocol tcp --dst-port 22"),),
        after="""
            openstack default security group rule list | grep 22:22
            openstack default security group rule delete \\
                $(openstack default security group rule list -f value | \\
                grep 22:22 | cut -d' ' -f1)""",
    ),
    Reading(
        "docs/networks.md",
        ("--network vmbr0", "network create mine"),
        sentences=(
            "openstack network rbac create --type network --action access_as_shared "
            "--target-project <project ID> mine",
        ),
        before=_THEIRS,
        values=(
            ("<project ID>", "$(OS_CLOUD=micronova openstack project show theirs -f value -c id)"),
        ),
        after=f"""{_as("theirs")} openstack network show mine
            {NO_SERVERS}
            openstack network delete mine{_NO_THEIRS}""",
    ),
    Reading(
        "docs/networks.md",
        who="micronova",
        sentences=(
            "openstack network set --mtu 9000 vmbr1",
            "openstack quota set --networks 5 PROJECT",
            "openstack network auto allocated topology create --check-resources",
        ),
        values=(("vmbr1", "vmbr0"), ("PROJECT", "demo")),
        after="""
            openstack network show vmbr0 -f value -c mtu | grep -x 9000
            openstack quota show --network demo | grep -w 5
            openstack network set --mtu 1500 vmbr0
            openstack quota delete --network demo""",
    ),
]

VOLUMES = [
    Reading(
        "docs/volumes.md",
        ("add volume web data",),
        before=WEB,
        sentences=(
            "openstack volume create --size 10 --hint local_to_instance=<server ID> data",
            "micronova volume message list",
            "openstack --os-volume-api-version 3.5 volume message list",
            "micronova explain <request id>",
            "micronova doctor",
            "pvesm status",
        ),
        values=(
            ("<server ID>", "$(openstack server show web -f value -c id)"),
            ("<request id>", REQUEST),
        ),
        after=f"{NO_VOLUMES}\n{NO_SERVERS}",
    ),
    Reading(
        "docs/volumes.md",
        ("--boot-from-volume",),
        before="openstack volume create --size 10 --image debian-12 system",
        after=f"{NO_SERVERS}\n{NO_VOLUMES}",
    ),
    Reading(
        "docs/volumes.md",
        ("--ephemeral 50",),
        who="micronova",
        after=f"{NO_SERVERS}\nopenstack flavor delete m1.scratch",
    ),
    Reading(
        "docs/volumes.md",
        ("volume revert before", "image create --volume data golden", "backup restore"),
        before="openstack volume create --size 1 data",
        sentences=("micronova explain <volume, snapshot or transfer>",),
        values=(("<volume, snapshot or transfer>", "data"),),
        after=f"openstack image delete golden\n{NO_VOLUMES}",
    ),
    Reading(
        "docs/volumes.md",
        ("transfer request accept",),
        before=f"""{_THEIRS}
            openstack volume create --size 1 data
            openstack volume create --size 1 back
            openstack volume transfer request create back""",
        sentences=("micronova explain <volume or transfer>",),
        values=(
            (
                "openstack volume transfer request accept",
                f"{_as('theirs')} openstack volume transfer request accept",
            ),
            ("5f1c… <id>", f"{_printed('auth_key')} {_printed('id')}"),
            ("delete <id>", "delete $(openstack volume transfer request list -f value -c ID)"),
            ("<volume or transfer>", "back"),
        ),
        after=f"""
            openstack volume show back -f value -c status | grep -x available
            {_as("theirs")} openstack volume delete data
            {NO_VOLUMES}{_NO_THEIRS}""",
    ),
    Reading(
        "docs/volumes.md",
        who="micronova",
        sentences=(
            "openstack volume backend pool list --long",
            "openstack volume service set --disable --disable-reason <why> <host> cinder-volume",
        ),
        values=(
            ("<why>", "why"),
            (
                "<host>",
                f"{VOLUME_HOSTS} | head -1)",
            ),
        ),
        after=f"""
            openstack volume service set --enable \\
                {VOLUME_HOSTS} -c Status | sed -n 's/ disabled//p') cinder-volume""",
    ),
]

OPERATE = [
    Reading(
        "docs/operate.md",
        ("micronova queue list",),
        who="micronova",
        before=TINY,
        values=(("<server or request ID>", "web"),),
        after=NO_SERVERS,
    ),
    Reading("docs/operate.md", ("micronova orphan list",), who="micronova"),
    Reading("docs/operate.md", ("drain pve3 --wait",), who="micronova"),
    Reading(
        "docs/operate.md",
        ("openstack aggregate create",),
        who="micronova",
        values=(("<id>", "$(openstack server group show web -f value -c id)"),),
        after=f"""{NO_SERVERS}
            openstack server group delete web
            openstack aggregate remove host fast pve3
            openstack aggregate delete fast""",
    ),
    Reading(
        "docs/operate.md",
        ("micronova metrics --output",),
        who="micronova",
        before="mkdir -p node-exporter",
        values=(("/var/lib/prometheus/", ""),),
        after="promtool check metrics < node-exporter/micronova.prom",
    ),
    Reading(
        "docs/operate.md",
        ("micronova server adopt",),
        who="micronova",
        before="pvesh create /nodes/pve1/qemu --vmid 500 --name web --memory 512 --scsi0 shared:1",
        values=(("--cluster c1", "--cluster sim1"),),
        after="qm stop 500\nqm destroy 500 --purge",
    ),
]

OTHERS = [
    Reading(
        "docs/images.md",
        ("--file debian.qcow2", "metadef namespace list"),
        after="openstack image delete debian",
    ),
    Reading(
        "docs/images.md",
        ("pvesh create",),
        values=(("debian-12.qcow2", "printed.qcow2"),),
        after="""
            pvesh get /nodes/pve2/storage/shared/content --content import | grep printed.qcow2
            pvesm free shared:import/printed.qcow2""",
    ),
    Reading(
        "docs/troubleshoot.md",
        ("micronova explain",),
        before=TINY,
        values=(SERVER,),
        after=NO_SERVERS,
    ),
]

FIRST = Reading("README.md", ("openstack flavor list",), together=True)
"""Run by the programs as they are installed."""
INSTALLED = [
    Reading(
        "README.md",
        ("make demo",),
        values=(
            ("make demo  ", 'make demo ARGS="--state-dir demo --port 0"  '),
            # in the foreground, until Ctrl-C; and all tests, this one too
            ("make up  ", "make -n up | grep '.venv/bin/micronova up'  "),
            ("make test  ", "make -n test | grep '.venv/bin/tox run'  "),
        ),
    ),
    Reading(
        "docs/tracing.md",
        ("pip install",),
        values=(("pip install", "$(readlink -f .venv/bin)/python -m pip install --no-index"),),
        after=f"! grep 'does not provide' {LAST}",
    ),
]

GROUPS = [
    Reading("docs/groups.md", ("group create web",), sentences=("micronova group quota",)),
]

READINGS = [*INSTALLED, *NETWORKS, *VOLUMES, *GROUPS, *OPERATE, *OTHERS]
