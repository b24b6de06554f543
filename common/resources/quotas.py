"""Default quotas of projects.

Names and numbers are Nova's. Usage is never stored: it is summed over the live servers.
"""

from __future__ import annotations

from collections.abc import Mapping

from oslo_config import cfg

GROUP = "quota"
UNLIMITED = -1
#: the quota class whose limits are the defaults of all projects
DEFAULT_CLASS = "default"

#: resource → (default limit, what it counts)
RESOURCES: Mapping[str, tuple[int, str]] = {
    "instances": (10, "Servers of a project."),
    "cores": (20, "Virtual CPUs of a project's servers."),
    "ram": (51_200, "MiB of memory of a project's servers."),
    "metadata_items": (128, "Metadata items of one server."),
    "injected_files": (5, "Files of one create, before 2.57."),
    "injected_file_content_bytes": (10_240, "Bytes of such a file, in base64."),
    "injected_file_path_bytes": (255, "Bytes of the path of such a file."),
    "key_pairs": (100, "Key pairs of a user."),
    "server_groups": (10, "Server groups of a project."),
    "server_group_members": (10, "Servers of one server group."),
}

DEFAULTS: Mapping[str, int] = {name: limit for name, (limit, _) in RESOURCES.items()}

OPTIONS = [
    cfg.IntOpt(
        # Nova's option for this one is named differently from the quota.
        "injected_file_path_length" if name == "injected_file_path_bytes" else name,
        default=limit,
        min=UNLIMITED,
        help=f"{text} -1: unlimited. A project's own limit overrides it.",
    )
    for name, (limit, text) in RESOURCES.items()
]

#: Neutron's, as the next ones, so that Nova's API doesn't show them
PORTS = cfg.IntOpt(
    "ports",
    default=500,
    min=UNLIMITED,
    help="Ports of a project: none is made by a user over it. Those that are made with servers "
    "count, and are limited by the servers alone. -1: unlimited.",
)
#: option → (the resource's name in the Network API, default limit, what it counts)
OF_NETWORKS: Mapping[str, tuple[str, int, str]] = {
    "networks": ("network", 100, "Networks of a project."),
    "subnets": ("subnet", 100, "Subnets of a project."),
    "rbac_policies": ("rbac_policy", 10, "RBAC policies of a project."),
    "security_groups": (
        "security_group",
        10,
        "Security groups of a project, its default one included.",
    ),
    "security_group_rules": (
        "security_group_rule",
        100,
        "Rules of all security groups of a project.",
    ),
}
#: resources of Neutron's that can't be made here, but whose limits clients read and write
ABSENT = ("subnetpool", "router", "floatingip")
#: Cinder's, under its names
OF_VOLUMES: Mapping[str, tuple[int, str]] = {
    "volumes": (10, "Volumes of a project."),
    "snapshots": (10, "Snapshots of a project's volumes."),
    "gigabytes": (1000, "GiB of all volumes and snapshots of a project."),
    "per_volume_gigabytes": (UNLIMITED, "GiB of one volume."),
    "backups": (10, "Backups of a project's volumes."),
    "backup_gigabytes": (1000, "GiB of all volumes that backups of a project are of."),
    "groups": (10, "Groups of volumes, which are not supported."),
}
#: the quota of scaling groups: Cinder's ``groups`` has that name
GROUPS = "scaling_groups"
#: Glance's, under the names of its limits in Keystone
OF_IMAGES: Mapping[str, tuple[int, str]] = {
    "image_count_total": (500, "Images of a project, those of servers and volumes included."),
    "image_count_uploading": (
        50,
        "Images of a project whose data are being sent, or wait to be imported or for a cluster.",
    ),
    "image_size_total": (1_048_576, "MiB of the data of all images of a project."),
    "image_stage_total": (
        204_800,
        "MiB of data of a project that are being sent, or wait to be imported.",
    ),
}
#: what has a limit for each volume type, too: `gigabytes_<type>`
OF_TYPES = ("volumes", "snapshots", "gigabytes")
VOLUME_OPTIONS = [
    cfg.IntOpt(name, default=limit, min=UNLIMITED, help=f"{text} -1: unlimited.")
    for name, (limit, text) in OF_VOLUMES.items()
]
NETWORK_OPTIONS = [
    cfg.IntOpt(name, default=limit, min=UNLIMITED, help=f"{text} -1: unlimited.")
    for name, (_, limit, text) in OF_NETWORKS.items()
]
GROUP_OPTIONS = [
    cfg.IntOpt(
        GROUPS,
        default=10,
        min=UNLIMITED,
        help="Groups of a project whose number of servers is kept. -1: unlimited.",
    ),
]
IMAGE_OPTIONS = [
    cfg.IntOpt(name, default=limit, min=UNLIMITED, help=f"{text} -1: unlimited.")
    for name, (limit, text) in OF_IMAGES.items()
]


def register(conf: cfg.ConfigOpts) -> None:
    """Declare the defaults as options of `[quota]`; idempotent."""
    options = [*OPTIONS, PORTS, *NETWORK_OPTIONS, *VOLUME_OPTIONS, *IMAGE_OPTIONS]
    options += GROUP_OPTIONS
    conf.register_opts(options, group=GROUP)


def defaults(conf: cfg.ConfigOpts) -> dict[str, int]:
    """Return the default limits of this installation: {resource: limit, -1 for unlimited}."""
    return {
        name: conf[GROUP][option.dest] for name, option in zip(RESOURCES, OPTIONS, strict=True)
    }


def of_groups(conf: cfg.ConfigOpts) -> dict[str, int]:
    """Return the default limit of a project's scaling groups; -1: none."""
    return {GROUPS: int(conf[GROUP][GROUPS])}


def of_images(conf: cfg.ConfigOpts) -> dict[str, int]:
    """Return the limits of a project's images, -1 for none; sizes in MiB."""
    return {name: int(conf[GROUP][name]) for name in OF_IMAGES}


def of_networks(conf: cfg.ConfigOpts) -> dict[str, int]:
    """Return the default limits of the Network API, under Neutron's names; -1: unlimited.

    What can't be made here has 0.
    """
    own = {name: conf[GROUP][option] for option, (name, *_) in OF_NETWORKS.items()}
    return {**dict.fromkeys(ABSENT, 0), **own, "port": conf[GROUP].ports}


def allows(limit: int, wanted: int) -> bool:
    """Return whether a total is within the limit."""
    return limit == UNLIMITED or wanted <= limit
