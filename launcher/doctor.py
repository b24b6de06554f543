"""What is wrong with the clusters that are configured, or could be better, as lines for people."""

from __future__ import annotations

from oslo_config import cfg


def examine(conf: cfg.ConfigOpts) -> tuple[list[str], bool]:
    """Return a line for each cluster and each finding, and whether all of them can be used.

    Raises ConfigurationError for settings that can't be read.
    """
    from compute import preflight
    from compute.hypervisor.proxmox import settings

    if conf.compute.driver == "null":
        return ["No Proxmox VE: [compute] driver is null."], True
    lines, well = [], True
    filtered = preflight.are_filtered(conf)
    for cluster in settings.clusters(conf):
        checked, problems = preflight.examine(
            cluster, filtered=filtered, zones=preflight.vnet_zones(conf, cluster.name)
        )
        if checked.version:
            nodes = ", ".join(checked.nodes) or "none"
            lines.append(f"Cluster {cluster.name}: Proxmox VE {checked.version}, nodes: {nodes}.")
        lines += [str(one) for one in (*problems, *checked.refused)]
        well = well and not problems
    return lines, well
