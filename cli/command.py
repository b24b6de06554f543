"""The base of the client's commands: declared arguments, a cloud, one-line errors."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import cliff.command
import cliff.lister
import cliff.show

from cli.cloud import Cloud
from cli.errors import CommandFailed, sentence
from cli.hints import hint
from cli.render import colours
from cli.render.examples import with_examples
from cli.usage import reason_first


@dataclass(frozen=True)
class Argument:
    """One argument of a command, in argparse's words."""

    names: tuple[str, ...]
    keywords: Mapping[str, Any]


@dataclass(frozen=True)
class OneOf:
    """Arguments that exclude each other."""

    arguments: tuple[Argument, ...]
    required: bool = False


def argument(*names: str, **keywords: Any) -> Argument:
    """Declare an argument, as ``ArgumentParser.add_argument`` takes it."""
    return Argument(names, keywords)


def flag(*names: str, **keywords: Any) -> Argument:
    """Declare an option without a value."""
    return Argument(names, {"action": "store_true", **keywords})


def one_of(*arguments: Argument, required: bool = False) -> OneOf:
    """Declare arguments that exclude each other."""
    return OneOf(arguments, required)


class Pairs(argparse.Action):
    """``key=value``, repeated, into a dict."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        key, found, value = str(values).partition("=")
        if not found or not key:
            raise argparse.ArgumentError(self, f"expected <key=value>, not {values!r}")
        pairs = dict(getattr(namespace, self.dest) or {})
        pairs[key] = value
        setattr(namespace, self.dest, pairs)


_TRUE = frozenset({"1", "t", "true", "on", "y", "yes"})

ALL_PROJECTS = flag(
    "--all-projects",
    default=os.environ.get("ALL_PROJECTS", "").strip().lower() in _TRUE,
    help="Look in all projects (admin only; Env: ALL_PROJECTS)",
)

PAGING = (
    argument("--limit", metavar="<limit>", type=int, help="Entries per page"),
    argument("--marker", metavar="<marker>", help="Begin after this entry (ID)"),
    argument("--max-items", metavar="<max-items>", type=int, help="Entries in total"),
)


def paging(parsed_args: argparse.Namespace) -> dict[str, Any]:
    """Return the query of the paging options: a limit without more asks for that one page."""
    query = given(parsed_args, "limit", "marker", "max_items")
    return query | ({"paginated": False} if "limit" in query else {})


def given(parsed_args: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return those of the named options that were given a value."""
    values = {name: getattr(parsed_args, name) for name in names}
    return {name: value for name, value in values.items() if value not in (None, False, [], {})}


class OneLineErrors(cliff.command.Command):
    """Reports any error of a command in one line; also mixed into other packages' commands."""

    exit_code = 0
    """Set by a command that did its work but whose result means failure."""
    in_all_regions: ClassVar[bool] = False
    """Whether it may run with ``--all-regions``: it reads, or shows what would happen."""
    one_region_is_enough: ClassVar[bool] = False
    """Whether one region's success is that of all, as where something is looked for."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser, which prints an error before the usage, and has examples."""
        return with_examples(reason_first(super().get_parser(prog_name)), prog_name)

    def get_epilog(self) -> str:
        """Return nothing: cliff would read every installed package to name this one."""
        return ""

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run; an error becomes one line, which cliff prints (with ``--debug``, its traceback)."""
        try:
            return super().run(parsed_args) or self.exit_code
        except BrokenPipeError:
            raise
        except Exception as error:
            raise CommandFailed(self.error_line(error, parsed_args)) from error

    def produce_output(self, parsed_args: argparse.Namespace, columns: Any, data: Any) -> Any:
        """Show the output; say on standard error that a list for people is empty."""
        shown: Any = super()
        if colours.wanted(parsed_args, self.app.stdout):
            in_colours = colours.fields if isinstance(self, cliff.show.ShowOne) else colours.rows
            data = in_colours(columns, data)
        if isinstance(self, cliff.lister.Lister) and parsed_args.formatter == "table":
            data = list(data)
            if not data:
                self.app.stderr.write("Nothing to list.\n")
        return shown.produce_output(parsed_args, columns, data)

    def error_line(self, error: BaseException, given: argparse.Namespace) -> str:
        """Return an error's line, with the names there are where one is wrong."""
        text = sentence(error)
        manager: Any = getattr(self.app, "client_manager", None)
        cloud = getattr(manager, "micronova", None)
        if not isinstance(cloud, Cloud):
            return text
        said = hint(lambda: cloud.connection, text, given)
        return f"{text if text.endswith(('.', ')')) or not said else f'{text}.'}{said}"


def with_one_line_errors(command: type[Any]) -> type[Any]:
    """Return the command with ``OneLineErrors``, if it is another package's."""
    if issubclass(command, OneLineErrors):
        return command
    metaclass: Any = type(command)
    namespace = {"__module__": command.__module__, "__doc__": command.__doc__}
    guarded: type[Any] = metaclass(command.__name__, (OneLineErrors, command), namespace)
    return guarded


class Command(OneLineErrors):
    """A command on a cloud. It runs under ``micronova`` and under ``openstack``."""

    arguments: ClassVar[tuple[Argument | OneOf, ...]] = ()

    @property
    def cloud(self) -> Cloud:
        """The cloud; reaching for it doesn't connect yet."""
        manager: Any = self.app.client_manager  # type: ignore[attr-defined]
        cloud: Cloud = manager.micronova
        return cloud

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser with the declared arguments."""
        parser = super().get_parser(prog_name)
        for declared in self.arguments:
            if isinstance(declared, OneOf):
                group = parser.add_mutually_exclusive_group(required=declared.required)
                for choice in declared.arguments:
                    group.add_argument(*choice.names, **choice.keywords)
            else:
                parser.add_argument(*declared.names, **declared.keywords)
        return parser

    def say(self, line: str) -> None:
        """Print a line on standard error, where it doesn't mix with the data."""
        self.app.stderr.write(line + "\n")
        self.app.stderr.flush()

    def each(self, names: Sequence[str], what: str, act: Callable[[str], object]) -> None:
        """Do ``act`` for every name; continue after a failure, and fail at the end.

        :param what: for the message, e.g. ``delete flavor``.
        :raises CommandFailed: some failed; each has had its own line.
        """
        failed = 0
        for name in names:
            try:
                act(name)
            except Exception as error:  # noqa: BLE001  (shown here, and counted below)
                failed += 1
                self.say(
                    f"Failed to {what} '{name}': {self.error_line(error, argparse.Namespace())}"
                )
        if failed:
            raise CommandFailed(f"{failed} of {len(names)} failed: {what}")


class Lister(Command, cliff.lister.Lister):
    """A command that shows a table."""

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Return headers and rows."""
        raise NotImplementedError


class ShowOne(Command, cliff.show.ShowOne):
    """A command that shows one thing."""

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Sequence[Any]]:
        """Return names and values."""
        raise NotImplementedError
