"""``micronova doctor``: is the installation fit for use?"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from cli.command import Command, argument
from cli.services.service import CONFIGURATION, any_config_files, reading
from common import findings
from common.findings import Finding, Level

if TYPE_CHECKING:
    from launcher.doctor import Diagnosis


#: the exit code where servers can't be built, as with files that can't be read
UNFIT = 2


class Doctor(Command):
    """Check the clusters, databases, bus and Keystone of a configuration, and name the remedies.

    The exit code is 0 if nothing is wrong, 1 if all works and something should be mended, and 2
    if servers can't be built, or not everywhere. What each finding means is in docs/doctor.md.
    """

    arguments = (
        CONFIGURATION,
        argument(
            "--fix-lines",
            action="store_true",
            help="Print only the commands that mend what was found, one a line",
        ),
        argument("--json", action="store_true", help="Print what was found as JSON"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Check them."""
        from common.errors import ConfigurationError
        from launcher import configuration, doctor

        try:
            files = any_config_files(parsed_args)
            conf = configuration.load(files)
            self.say(reading(files))
            configuration.register_clusters(conf)
            found = doctor.diagnose(conf)
        except ConfigurationError as error:
            self.say(error.message)
            return UNFIT
        if parsed_args.json:
            self.app.stdout.write(_json(found) + "\n")
        else:
            lines = (
                _fix_lines(found.findings)
                if parsed_args.fix_lines
                else shown(found.lines, found.findings)
            )
            for line in lines:
                self.app.stdout.write(line + "\n")
        return findings.exit_code(found.findings)


def _json(found: Diagnosis) -> str:
    rows = [dataclasses.asdict(one) for one in found.findings]
    return json.dumps({"seen": found.lines, "findings": rows}, indent=2)


def _fix_lines(found: tuple[Finding, ...]) -> Iterator[str]:
    mended = (one for one in found if one.level is not Level.NOTE)
    return iter(dict.fromkeys(line for one in mended for line in one.lines))


def shown(seen: Iterable[str], found: Sequence[Finding]) -> Iterator[str]:
    """Yield lines for people about clusters that were seen and what was found."""
    yield from seen
    for one in found:
        yield f"{one.level}: {one.where}: {one.what}"
        yield f"    {one.why} ({one.code})"
        for line in one.lines:
            yield f"    $ {line}"
    if not findings.exit_code(found):
        yield "Nothing is wrong."
