"""``micronova orphan …``: VMs and volumes without an owner."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

from cli.admin.audit import findings, since
from cli.audits import answer, fresh
from cli.columns import Pairs
from cli.command import Command, Lister, argument, flag
from cli.errors import CommandFailed
from common.story.findings import is_orphan, runs, unproven

#: how many audits may pass until a removal is confirmed, and the time for each
_AUDITS, _AUDIT_SECONDS, _PAUSE_SECONDS = 20, 900.0, 1.0
_HEADERS = ("Finding", "Kind", "Subject", "Node", "Age", "Ours", "Status", "Cause", "Evidence")


class ListOrphans(Lister):
    """List VMs and volumes that the last audit found without an owner, with the evidence.

    "Ours" shows whether it is proven to be this cloud's; nothing unproven is ever touched.
    """

    in_all_regions = True

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each of them."""
        return _HEADERS, [_row(one) for one in _orphans(self.cloud.compute)]


class ReapOrphans(Command):
    """Remove stopped orphans that are proven to be this cloud's; without --yes only list them.

    An audit confirms that each is gone, or the reason is shown.

    --force removes running VMs too. What isn't proven is never touched: neither a name,
    nor a tag, nor a VMID is a proof.
    """

    arguments = (
        argument(
            "finding",
            metavar="<finding>",
            nargs="*",
            type=int,
            help="Findings of 'orphan list' (default: all)",
        ),
        flag("--yes", help="Remove them"),
        flag("--force", help="Remove running VMs too"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """List the orphans, and remove them with --yes."""
        known = {one["id"]: one for one in _orphans(self.cloud.compute)}
        unknown = sorted(set(parsed_args.finding) - set(known))
        if unknown:
            raise CommandFailed(f"No open orphan: {', '.join(map(str, unknown))}")
        chosen = [known[one] for one in parsed_args.finding] or list(known.values())
        reaped = [one for one in chosen if not self._kept(one, parsed_args.force)]
        if not parsed_args.yes:
            self._dry_run(reaped)
            return

        begun: dict[str, str] = {}
        together = _together(reaped)

        def reap(number: str) -> None:
            path = f"/audit/findings/{number}/action"
            done = answer(
                self.cloud.compute.post(path, json={"heal": {"force": parsed_args.force}})
            )
            begun.update(dict.fromkeys(together[number], done["heal"]["answer"]))

        def see_gone(number: str) -> None:
            self._see_gone(number, begun[number])

        try:
            self.each(list(together), "reap orphan", reap)
        finally:
            if begun:
                self.each(list(begun), "see orphan gone", see_gone)

    def _see_gone(self, number: str, began: str) -> None:
        """Wait until an audit confirms the removal. Raises CommandFailed with the reason."""
        result = began
        for _ in range(_AUDITS):
            fresh(self.cloud, _AUDIT_SECONDS)
            now = answer(self.cloud.compute.get(f"/audit/findings/{number}"))["finding"]
            if now["healed_at"]:
                self.app.stdout.write(f"{number}: removed {now['subject']}\n")
                return
            result = now["answer"] or result
            if result != began:
                break
            self.cloud.pause(_PAUSE_SECONDS)
        raise CommandFailed(f"{now['subject']} is still there: {result}")

    def _kept(self, finding: Mapping[str, Any], force: bool) -> str | None:
        """Return why it is left alone, and print it; None if it is removed."""
        why, status = unproven(finding), runs(finding)
        if why is None and status is not None and not force:
            why = f"it is {status}; --force removes it all the same"
        if why is not None:
            self.app.stdout.write(f"{finding['id']}: kept {finding['subject']}: {why}\n")
        return why

    def _dry_run(self, reaped: list[dict[str, Any]]) -> None:
        for one in reaped:
            evidence = Pairs(_evidence(one)).human_readable()
            self.app.stdout.write(
                f"{one['id']}: would remove {one['subject']}: {one['cause']} ({evidence})\n"
            )
        if reaped:
            self.say("Nothing was done; --yes does it.")


def _orphans(compute: Any) -> list[dict[str, Any]]:
    return [one for one in findings(compute) if is_orphan(one)]


def _together(reaped: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the findings by the one whose removal removes them all: a VM with its volumes."""
    groups: dict[object, list[str]] = {}
    # A VM's first: whether it runs is looked at.
    for one in sorted(reaped, key=lambda one: "status" not in one["evidence"]):
        number, place = str(one["id"]), (one.get("cluster"), one.get("vmid"))
        whole = one["heal"] == "destroy" and None not in place
        groups.setdefault((one.get("server_uuid"), place) if whole else number, []).append(number)
    return {numbers[0]: numbers for numbers in groups.values()}


def _evidence(finding: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in finding["evidence"].items() if value is not None}


def _row(finding: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        finding["id"],
        finding["kind"],
        finding["subject"],
        finding["node"] or "",
        since(finding["first_seen_at"]),
        "yes" if finding["heal"] else "no",
        finding["evidence"].get("status") or "",
        finding["cause"],
        Pairs(_evidence(finding)),
    )
