"""Writes ``docs/states.md`` from the table of actions: ``python -m launcher.states_document``."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from common.failures import RULES
from common.resources.states import ACTIONS, BACK, SEEN, Action, TaskState, VmState

_HEAD = """\
# States, actions and failures

Made by `tox -e generate` from `common/resources/states.py` and `common/failures.py`; not \
to be edited.

What a server *is* (vm_state) and what is being *done* to it (task_state) are two things. An action
starts from certain states, walks its task_states, and ends in one vm_state or another.
"""


def _names(states: Iterable[VmState | TaskState | None] | None) -> str:
    if states is None:
        return "any"
    return ", ".join(sorted("none" if state is None else str(state) for state in states)) or "new"


def _row(action: Action) -> str:
    cells = (
        action.name,
        _names(action.vm_states),
        _names(action.task_states),
        " → ".join(action.walk),
        action.done or "as before",
        action.failed or "as seen, else as before",
    )
    return f"| {' | '.join(cells)} |"


def _begins(action: Action) -> list[VmState]:
    if action.vm_states is None:
        return [state for state in VmState if state != VmState.DELETED]
    return sorted(action.vm_states) or [VmState.BUILDING]


def _arrows() -> Iterable[str]:
    for action in ACTIONS.values():
        for begin in _begins(action):
            if action.done is not None:
                yield f"    {begin} --> {action.done}: {action.name}"
            if action.failed not in {None, begin}:
                yield f"    {begin} --> {action.failed}: {action.name} failed"


def document() -> str:
    """Return the page, as Markdown with a Mermaid picture."""
    lines = [
        _HEAD,
        "| action | from vm_state | from task_state | walks | ends in | failed |",
        "|---|---|---|---|---|---|",
        *(_row(action) for action in ACTIONS.values()),
        "",
        "```mermaid",
        "stateDiagram-v2",
        "    [*] --> building",
        *dict.fromkeys(_arrows()),
        "    deleted --> [*]",
        "```",
        "",
        "## What becomes of a server by what is seen",
        "",
        "While nothing is being done to a server, its power_state is the one seen, and its",
        "vm_state follows:",
        "",
        "| vm_state | seen | becomes |",
        "|---|---|---|",
        *(f"| {was} | {seen.name} | {now} |" for (was, seen), now in SEEN.items()),
        *(f"| error, its VM had vanished | {seen.name} | {now} |" for seen, now in BACK.items()),
        "| any | nowhere, by the whole cluster | error |",
        "",
        "## What is done about a failure",
        "",
        "A failure that is the host's fault makes the scheduler prefer others for a while; it",
        "never counts where it is final, a lock, or the VMID's.",
        "",
        "The operator reads the remedy that the failure itself names; where it names none, that",
        "of its category, with `{server}` and the command that repeats the action (`{again}`).",
        "",
        "| category | verdict | the host's fault | the owner reads | the operator reads "
        "| remedy |",
        "|---|---|---|---|---|---|",
        *(
            f"| {category} | {rule.verdict} | {'yes' if rule.blames_host else 'no'} "
            f"| {rule.user} | {rule.operator} | `{rule.remedy}` |"
            for category, rule in RULES.items()
        ),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(document())
