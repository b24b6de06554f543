"""``--all-regions``: a command in every region of the catalog at once, as one answer.

A table gets a column for the region; a single thing is looked for, and shown with its region. Each
region has its own connection, thread and time limit, and shares the login. A region that fails or
is late costs its own rows only: a line on standard error names it and why, and the exit code says
that the answer is partial.
"""

from __future__ import annotations

import argparse
import copy
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

import cliff.lister
import cliff.show

from cli.clients import Clients
from cli.cloud import Cloud
from cli.command import OneLineErrors
from cli.errors import CommandFailed
from cli.osc.names import entry_points

PARTIAL = 3
"""The exit code where regions didn't answer, and others did."""

_HEADER, _FIELD = "Region", "region"
#: what the same Keystone says in every region, and what no region says
_NOT_REGIONAL = re.compile(r"openstack\.identity\..*|openstack\.common:(module|configuration) .*")
_READS = ("list", "show")
_ABSENT_TYPES = frozenset({"NotFound", "NotFoundException", "ResourceNotFound"})
_ABSENT = re.compile(
    r"No \S.* (with a name or ID of|named|found for|exists)|\S.* could not be found"
)


def over_regions(name: str, command: type[Any]) -> type[Any]:
    """Return the command over all regions.

    :raises ValueError: the command changes something, or reads what all regions share.
    """
    if not _may_run(name, command):
        raise ValueError(
            f"'{name}' is no command for --all-regions: choose one with --os-region-name."
        )
    mixin = next(made for kind, made in _FORMS if issubclass(command, kind))
    metaclass: Any = type(command)
    namespace = {"__module__": command.__module__, "__doc__": command.__doc__, "single": command}
    widened: type[Any] = metaclass(command.__name__, (mixin, command), namespace)
    return widened


def _may_run(name: str, command: type[Any]) -> bool:
    theirs = entry_points().get(name)
    if command.in_all_regions or theirs is None:
        return bool(command.in_all_regions)
    where = f"{theirs.group}:{name}"
    return name.rsplit(maxsplit=1)[-1] in _READS and not _NOT_REGIONAL.match(where)


class RegionApp:
    """The program as the command of one region sees it: that region's cloud, its own streams."""

    def __init__(self, app: Any, cloud: Cloud) -> None:
        self._app = app
        self.client_manager = Clients(cloud)
        self.stdout, self.stderr = StringIO(), StringIO()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)


@dataclass
class Answer:
    """What one region answered."""

    region: str
    app: RegionApp
    result: Any = None
    code: int = 0
    error: str | None = None
    """Why there is no result, in one line."""
    absent: bool = False
    """Whether the region answered that it doesn't have what is asked for."""
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def answered(self) -> bool:
        """Whether the region did its part."""
        return self.error is None or self.absent


class OverRegions(OneLineErrors):
    """A command that runs once for each region."""

    single: type[Any]
    """The command in one region."""

    def gather(self, parsed_args: argparse.Namespace) -> list[Answer]:
        """Return the regions' results, by name; the exit code is set, what they said is shown.

        :raises CommandFailed: none has one.
        """
        if getattr(parsed_args, "marker", None):
            raise CommandFailed("--marker is of one region: choose it with --os-region-name")
        cloud: Cloud = self.app.client_manager.micronova  # type: ignore[attr-defined]
        seconds: float = self.app.options.region_seconds
        apps = {
            name: RegionApp(self.app, cloud.in_region(name, seconds)) for name in cloud.regions()
        }
        if not apps:
            raise CommandFailed("The catalog has no region with a compute API")
        answers = together(apps, lambda answer: self._run_one(answer, parsed_args), seconds)
        self._show_what_was_said(answers)
        found = [one for one in answers if one.error is None]
        lost = [one.region for one in answers if not one.answered]
        if not found:
            raise CommandFailed(f"No region has an answer: {len(answers)} were asked")
        codes = [one.code for one in found]
        own = min(codes) if self.one_region_is_enough else max(codes)
        self.exit_code = PARTIAL if lost else own
        return found

    def _run_one(self, answer: Answer, parsed_args: argparse.Namespace) -> None:
        command = self.single(answer.app, None)
        try:
            answer.result = _whole(command.take_action(copy.deepcopy(parsed_args)))
            answer.code = command.exit_code
        except Exception as error:  # noqa: BLE001  (shown beside the other regions' answers)
            answer.error = command.error_line(error, parsed_args)
            answer.absent = is_absence(error, answer.error)
        finally:
            answer.ended.set()

    def _show_what_was_said(self, answers: Iterable[Answer]) -> None:
        for one in answers:
            said = one.app.stderr.getvalue().splitlines() if one.ended.is_set() else []
            for line in [*said, *([] if one.error is None else [one.error])]:
                self.app.stderr.write(f"{one.region}: {line}\n")
        self.app.stderr.flush()


class OverTables(OverRegions):
    """One table, with a column for the region."""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return headers and rows of all regions."""
        return merged([(one.region, *one.result) for one in self.gather(parsed_args)])


class OverThings(OverRegions):
    """One thing, which is looked for in every region."""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return names and values of the thing, with its region."""
        found = the_one(self.gather(parsed_args))
        names, values = found.result
        return (_FIELD, *names), (found.region, *values)


class OverTexts(OverRegions):
    """A text about one thing, from the region where it was found."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Print the text."""
        found = the_one(self.gather(parsed_args))
        self.app.stderr.write(f"Region {found.region}\n")
        self.app.stdout.write(found.app.stdout.getvalue())


_FORMS: tuple[tuple[type[Any], type[OverRegions]], ...] = (
    (cliff.lister.Lister, OverTables),
    (cliff.show.ShowOne, OverThings),
    (object, OverTexts),
)


def together(
    apps: Mapping[str, RegionApp], run: Callable[[Answer], None], seconds: float
) -> list[Answer]:
    """Return an answer for each region, by name, after so many seconds at the latest.

    Threads of regions that are late end with the program; what they still say is not shown.
    """
    answers = [Answer(name, app) for name, app in sorted(apps.items())]
    for one in answers:
        threading.Thread(target=run, args=(one,), name=one.region, daemon=True).start()
    until = time.monotonic() + seconds
    shown = []
    for one in answers:
        if one.ended.wait(max(0.0, until - time.monotonic())):
            shown.append(one)
        else:
            shown.append(Answer(one.region, one.app, error=f"no answer within {seconds:g} s"))
    return shown


def merged(
    tables: Sequence[tuple[str, Sequence[str], Sequence[Sequence[Any]]]],
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return one table of (region, headers, rows); what a region's table lacks is empty.

    >>> merged([("n", ("ID",), [(1,)]), ("s", ("ID", "Host"), [(2, "h")])])
    (('Region', 'ID', 'Host'), [('n', 1, ''), ('s', 2, 'h')])
    """
    headers = tuple(dict.fromkeys(one for _, names, _ in tables for one in names))
    rows = []
    for region, names, some in tables:
        for row in some:
            cells = dict(zip(names, row, strict=True))
            rows.append((region, *(cells.get(name, "") for name in headers)))
    return (_HEADER, *headers), rows


def the_one(found: Sequence[Answer]) -> Answer:
    """Return the only answer. Raises CommandFailed where several regions have one."""
    if len(found) > 1:
        names = ", ".join(one.region for one in found)
        raise CommandFailed(f"In several regions, choose one with --os-region-name: {names}")
    return found[0]


def is_absence(error: BaseException, line: str) -> bool:
    """Return whether an error means that the region doesn't have what is asked for."""
    return type(error).__name__ in _ABSENT_TYPES or bool(_ABSENT.match(line))


def _whole(result: Any) -> Any:
    """Return a table's rows as a list: they may be read from the API only when looked at."""
    if isinstance(result, tuple) and len(result) == 2:
        return result[0], list(result[1])
    return result
