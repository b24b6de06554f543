"""Options in configuration files that this release doesn't have, or has under another name."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from oslo_config import cfg
from oslo_upgradecheck.upgradecheck import Code, Result

from launcher import configuration, listing

Known = Mapping[str, Mapping[str, cfg.Opt]]


def check(conf: cfg.ConfigOpts) -> Result:
    """Whether all that the files set means something to this release."""
    configuration.register_logins(conf)
    configuration.register_clusters(conf)
    known = listing.groups(conf)
    said = [line for name in conf.config_file or () for line in _of_file(name, known)]
    return Result(Code.WARNING if said else Code.SUCCESS, " ".join(said) or "All is known.")


def _of_file(name: str, known: Known) -> Iterator[str]:
    sections: dict[str, dict[str, list[str]]] = {}
    cfg.ConfigParser(name, sections).parse()
    for group, options in sections.items():
        for option in options:
            said = about(group, option, known)
            if said is not None:
                yield f"{name}: {said}"


def about(group: str, option: str, known: Known) -> str | None:
    """Return what is to be said of an option that a file sets; None: nothing."""
    found, name = known.get(group, {}), option.replace("-", "_")
    if name in found:
        leaving = found[name].deprecated_for_removal
        why = found[name].deprecated_reason or ""
        return f"[{group}] {option} will be removed. {why}".strip() if leaving else None
    now = next(_renamed(group, name, known), None)
    if now is not None:
        return f"[{group}] {option} is {now} now."
    if not found:
        return f"this release has no group [{group}]; {option} has no effect."
    close = difflib.get_close_matches(name, found, 1)
    meant = f" Is {close[0]} meant?" if close else ""
    return f"this release has no [{group}] {option}; it has no effect.{meant}"


def _renamed(group: str, name: str, known: Known) -> Iterator[str]:
    """Yield the options that had this group and name."""
    for new_group, options in known.items():
        for new_name, one in options.items():
            for old in one.deprecated_opts:
                former = (old.group or new_group, (old.name or new_name).replace("-", "_"))
                if former == (group, name):
                    yield f"[{new_group}] {new_name}"
