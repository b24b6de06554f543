"""Resources that have commands in ``openstack`` but don't exist here, by first words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: the longest beginning counts
ABSENT: Mapping[str, str] = {
    "accelerator": "accelerators",
    "address group": "address groups",
    "address scope": "address scopes",
    "baremetal": "bare metal nodes",
    "bgp": "BGP speakers",
    "bgpvpn": "BGP VPNs",
    "cached image": "caches of the image API",
    "coe": "container clusters",
    "consistency group": "groups of volumes",
    "container": "object storage",
    "dataprocessing": "data processing clusters",
    "default security": "rules for new security groups",
    "dns": "DNS zones",
    "firewall group": "firewall groups",
    "floating ip": "floating IPs",
    "image metadef": "metadata definitions",
    "image stores": "stores of images to choose from",
    "image task": "tasks of the image API",
    "ip availability": "counts of free addresses",
    "loadbalancer": "load balancers",
    "load balancer": "load balancers",
    "local ip": "local IPs",
    "network agent": "agents of networks",
    "network auto": "automatic topologies",
    "network flavor": "flavors of networks",
    "network l3": "L3 conntrack helpers",
    "network meter": "meters of networks",
    "network onboard": "pools of subnets",
    "network qos": "QoS policies of networks",
    "network segment": "segments of networks",
    "network subport": "trunks",
    "network trunk": "trunks",
    "object": "object storage",
    "orchestration": "stacks",
    "ptr record": "DNS records",
    "recordset": "DNS records",
    "router": "routers",
    "secret": "secrets",
    "server add floating": "floating IPs",
    "server remove floating": "floating IPs",
    "server share": "file shares",
    "share": "file shares",
    "stack": "stacks",
    "subnet pool": "pools of subnets",
    "volume backup record": "records of backups to export",
    "volume group": "groups of volumes",
    "volume qos": "QoS specifications of volumes",
    "vpn": "VPNs",
    "zone": "DNS zones",
}


def absent(words: Sequence[str]) -> str | None:
    """Return what a command is about that doesn't exist here; None: no such command is known."""
    for length in range(len(words), 0, -1):
        found = ABSENT.get(" ".join(words[:length]))
        if found:
            return found
    return None
