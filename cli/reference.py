"""The reference of the commands, made from their declarations: ``docs/cli.md``.

``python -m cli.reference docs/cli.md`` writes it; a test compares it with the table of commands.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import cliff.lister
import cliff.show

from cli import options
from cli.command import Argument, OneOf
from cli.commands import COMMANDS, CommandTable
from cli.render.examples import lines
from cli.watch import WATCH_OPTIONS, Watched

_HEAD = """\
# Commands of `micronova`

`micronova` runs the services and is a client of the cloud. It has two kinds of commands:

- Its own, described below. If `openstack` has a command of the same name, options and columns mean
  the same, and ours shows more: with `--wait` the steps and the reason of a failure, after an
  unknown name the existing names. Three commands lack options of `openstack`: `server create`
  `--block-device-mapping`, `--file`, `--image-property`, `--no-security-group`, `--password` and
  `--trusted-image-cert`; `server list` a few filters; `server show` `--diagnostics`
  and `--topology`. `explain` and `node` also exist as `openstack micronova explain` and
  `openstack micronova node …`.
- Those of python-openstackclient, unchanged: flavors, images, key pairs, networks, quotas,
  aggregates, server groups, hypervisors, projects, users and all other actions on servers
  (`server resize`, `server migrate`, `server lock` …). With osc-placement installed, also those of
  placement (`resource provider list` …). Their output is that of `openstack`. All commands that
  begin an action on servers have our `--wait`: it shows the stages on standard error, and fails
  with the reason.

`micronova help` lists both, without commands of services that don't exist here (object storage,
routers …); use `openstack` for those. Both kinds use the same credentials (`--os-…` before `OS_…`
before `clouds.yaml`, as with `openstack`) and one session. The options of rarer authentication
plugins are accepted as well. A command is imported when it runs, so that `openstack`'s commands
cost nothing until then. Both kinds report an error in one line with the request ID. An unknown or
abbreviated command runs nothing. The APIs are used at the newest microversion that both sides
know, unless `--os-compute-api-version`, `--os-volume-api-version` or
`--os-placement-api-version` names another.


    micronova [global options] <command> [its options]
    micronova help <command>

Exit code: 0 done, 1 failed (one line on standard error says why, `--debug` shows all of it),
2 wrong usage, 3 not all regions answered (`--all-regions`). With `--wait` the steps are written to
standard error, so that standard output has only data. A step that copies disks or memory shows its
progress, if Proxmox VE reports it: percent, bytes and the time left at the average rate so far. On
a terminal the line is redrawn, else a line is printed for each tenth.

Completion for bash: `micronova complete > /etc/bash_completion.d/micronova`, or
`source <(micronova complete)` for one shell. For zsh, in a folder of `$fpath`:
`micronova complete --shell zsh > _micronova`; for fish:
`micronova complete --shell fish > ~/.config/fish/completions/micronova.fish`.

With `--all-regions` a command that lists or shows asks all regions of the catalog at the same
time. Tables get a column for the region; a single thing is looked for, and shown with its region.
What a region says, and why one has no answer, is a line with its name on standard error; after
`--region-seconds` it isn't waited for. `--limit` counts in each region. `capacity` and `schedule`
succeed if one region has room for all. See [regions](regions.md).

Tables take `-f table|json|yaml|value|csv` and `-c <column>`, single things `-f table|json|yaml|`
`value|shell` and `-c <field>`; `--sort-column`, `--max-width` and more are in `micronova help`.

This page is generated: `python -m cli.reference docs/cli.md`.
"""


def reference() -> str:
    """Return the page."""
    parts = [_HEAD, "## Global options\n", _options(_global_arguments())]
    for noun, names in groupby(sorted(COMMANDS), key=_noun):
        parts.append(f"## {noun}\n")
        parts.extend(_command(name) for name in names)
    return "\n".join(parts)


def _noun(name: str) -> str:
    words = name.split()
    return words[0] if len(words) < 3 else " ".join(words[:-1])


def _global_arguments() -> list[Argument]:
    parser = argparse.ArgumentParser(add_help=False)
    options.add_to(parser)
    return [
        Argument(tuple(a.option_strings), {"metavar": a.metavar, "nargs": a.nargs, "help": a.help})
        for a in parser._actions
        if a.help != argparse.SUPPRESS
    ]


def _command(name: str) -> str:
    command: Any = CommandTable().commands[name].load()
    declared = list(_flat(getattr(command, "arguments", ())))
    if issubclass(command, Watched):
        declared += [Argument(names, keywords) for names, keywords in WATCH_OPTIONS]
    positional = [a for a in declared if not a.names[0].startswith("-")]
    usage = " ".join(["micronova", name, *map(_place, positional)])
    kind = ""
    if issubclass(command, cliff.lister.Lister):
        kind = " Shows a table."
    elif issubclass(command, cliff.show.ShowOne):
        kind = " Shows one object."
    text = f"### `{usage}`\n\n{inspect.getdoc(command)}{kind}\n"
    examples = "".join(f"\n    {line}" for line in lines(name)) + "\n"
    return text + (f"\n{_options(declared)}" if declared else "") + examples


def _flat(declared: tuple[Argument | OneOf, ...]) -> Iterator[Argument]:
    for item in declared:
        yield from item.arguments if isinstance(item, OneOf) else (item,)


def _place(positional: Argument) -> str:
    name = positional.keywords.get("metavar") or f"<{positional.names[0]}>"
    form = {"+": f"{name} …", "?": f"[{name}]", "*": f"[{name} …]"}
    return form.get(str(positional.keywords.get("nargs")), str(name))


def _options(arguments: list[Argument]) -> str:
    return "".join(f"- `{_form(a)}`: {a.keywords.get('help') or ''}\n" for a in arguments)


def _form(argument: Argument) -> str:
    keywords = argument.keywords
    if not argument.names[0].startswith("-"):
        return _place(argument)
    names = ", ".join(argument.names)
    switches = ("store_true", "store_const", "store_false")
    if keywords.get("action") in switches or keywords.get("nargs") == 0:
        return names
    choices = "|".join(map(str, keywords.get("choices") or ()))
    return f"{names} {keywords.get('metavar') or choices or '<value>'}"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
