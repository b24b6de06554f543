"""``micronova status``: may this release's services be started?"""

from __future__ import annotations

import argparse
import json

from cli.command import Command, flag
from cli.services.service import CONFIGURATION, any_config_files, reading

UNEXPECTED = 255
"""The exit code where the checks themselves broke off: nova-status's."""


class CheckUpgrade(Command):
    """Check whether a cloud can be upgraded to this release, before its services are started.

    As nova-status: the exit code is 0 if nothing prevents it, 1 if something should be looked at,
    2 if something prevents it, and 255 if the checks broke off. docs/upgrade.md says what follows.
    """

    arguments = (CONFIGURATION, flag("--json", help="Print the results as JSON"))

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Check."""
        from oslo_upgradecheck.upgradecheck import Code, Result

        from common.errors import ConfigurationError
        from common.log import logger
        from launcher import configuration
        from launcher.embedded import settings
        from launcher.upgrading import checks

        log = logger(__name__)
        try:
            files = any_config_files(parsed_args)
            conf = configuration.load(files, settings.register)
        except ConfigurationError as error:
            found = {"Configuration": Result(Code.FAILURE, error.message)}
        else:
            self.say(reading(files))
            try:
                found = checks.results(conf)
            except Exception:
                log.exception("The checks broke off.")
                return UNEXPECTED
        if parsed_args.json:
            rows = [
                {"check": name, "result": int(one.code), "details": one.details}
                for name, one in found.items()
            ]
            self.app.stdout.write(json.dumps({"name": "Upgrade Check Results", "checks": rows}))
            self.app.stdout.write("\n")
        else:
            checks.Table(found).check()
        return max(int(one.code) for one in found.values())
