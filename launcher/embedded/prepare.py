"""A child process that probes the hypervisors and upgrades the databases, then ends.

    python -m launcher.embedded.prepare <configuration file>

It is a process of its own so that what only it needs (migrations, probes) is in no other one's
memory. It reports the number of hosts to its parent.
"""

from __future__ import annotations

import logging
import sys

from oslo_config import cfg

from common import log
from common.errors import MicronovaError, Unavailable
from common.process.child import report
from compute import drivers
from launcher import configuration, databases
from launcher.embedded.settings import register

LOG = log.logger(__name__)


def main(config_file: str) -> int:
    """Prepare; return the exit code."""
    try:
        conf = configuration.load([config_file], register, service=configuration.PREPARATION)
        log.setup(conf, "preparation")
        # Not a line for each migration.
        logging.getLogger("alembic").setLevel(logging.WARNING)
        hosts = count_hosts(conf)
        report(step="upgrading the databases")
        databases.upgrade(conf, alone=True)
        if conf.embedded.joined_urls:
            join(conf)
    except MicronovaError as error:
        report(error=error.message)
        return 1
    except Exception as error:
        LOG.exception("The preparation failed.")
        report(error=f"The preparation failed: {type(error).__name__}: {error}".splitlines()[0])
        return 1
    report(ready=True, hosts=hosts)
    return 0


def join(conf: cfg.ConfigOpts) -> None:
    """Register the APIs in the catalog of a Keystone that runs already.

    Raises ConfigurationError or Unavailable, one line.
    """
    from keystoneauth1 import exceptions

    from common.clients import credentials
    from identity.joined import COMPUTE, Catalog
    from identity.layout import catalog

    session = credentials.session(conf, "placement")  # its login's options exist from here on
    options = conf.placement
    report(step=f"joining Keystone as region {options.region_name}")
    known = [catalog(options.auth_url, url) for url in conf.embedded.joined_urls]
    compute = {entry.url for urls in known for entry in urls if entry.type == COMPUTE}
    wanted = catalog(options.auth_url, conf.embedded.base_url)
    joined = Catalog(session, options.auth_url)
    try:
        joined.join(options.region_name, wanted, compute)
    except exceptions.ClientException as error:
        reason = str(error).splitlines()[0]
        raise Unavailable(
            f"The Keystone at {options.auth_url} can't be joined: {reason}"
        ) from error


def count_hosts(conf: cfg.ConfigOpts) -> int:
    """Return how many hosts are up. Raises ConfigurationError or Unavailable, one line."""
    if conf.compute.driver != drivers.PROXMOX:
        return sum(len(one.observe().hosts) for one in drivers.hypervisors(conf))
    from compute.doctor.examine import check
    from compute.preflight import UNFILTERED

    report(step="looking at the Proxmox VE clusters")
    examined = check(conf)
    for one in examined.findings:
        if one.code == UNFILTERED:
            report(note=f"{one.where}: {one.what}")
    return sum(len(cluster.nodes) for cluster in examined.clusters)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
