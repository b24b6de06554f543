"""The step runner: do in order; on failure undo in reverse; report both.

An undo runs for the failed step too, since a step may fail half done. ``do`` and ``undo`` look
before they act, so each may run twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from common.failures import RULES
from common.log import logger
from common.messages.reports import Category, Failure
from compute.commands.job import Job
from compute.commands.journal import ERROR, SUCCESS
from compute.hypervisor.port import Abandoned, Cancelled, Detail, HypervisorError, Removal

LOG = logger(__name__)


@dataclass(frozen=True)
class Step:
    """One step of an operation, as data."""

    name: str
    do: Callable[[], Detail]
    undo: Callable[[], Removal] | None = None
    undo_name: str = ""


@dataclass(frozen=True)
class Unwound:
    """The sum of all undos."""

    gone: bool = True
    cleaned: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    remedy: str | None = None

    def plus(self, removal: Removal) -> Unwound:
        """Return the sum with one more undo."""
        return Unwound(
            self.gone and removal.gone,
            self.cleaned + removal.cleaned,
            self.left + removal.left,
            self.remedy or removal.remedy,
        )


def carry_out(
    job: Job, steps: Sequence[Step], is_kept: Callable[[], bool] = lambda: False
) -> Failure | None:
    """Run the steps; return None if all succeeded, else the failure and what was cleaned up.

    After a failure ``is_kept`` is called: if it returns True, nothing is undone. ``Failure.clean``
    is about the undos that ran; if none ran, the caller decides. Raises Abandoned, and reports
    nothing further then.
    """
    for position, step in enumerate(steps):
        try:
            job.check()
            job.journal.begin(step.name)
            detail = step.do()
            job.journal.end(SUCCESS, detail)
        except Abandoned:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, what was made must go
            failed = as_error(job, error)
            job.journal.end(ERROR, {"error": failed.message, "category": failed.category.value})
            kept = job.done_before or is_kept()
            undone = Unwound(gone=False) if kept else _unwind(job, steps[: position + 1])
            return _failure(job, step.name, failed, undone)
    return None


def as_error(job: Job, error: Exception) -> HypervisorError:
    """Return any error of a step as one with a category; bugs are logged with traceback."""
    if isinstance(error, HypervisorError):
        return error
    if isinstance(error, Cancelled):
        return HypervisorError(
            Category.CREATION_FAILED, "The operation was cancelled by a later one."
        )
    of = job.command
    LOG.error("A step of %s %s failed.", of.resource_type, of.resource_id, exc_info=error)
    return HypervisorError(Category.CREATION_FAILED, f"A step broke: {type(error).__name__}.")


def _unwind(job: Job, steps: Sequence[Step]) -> Unwound:
    job.begin_unwinding()
    unwound = Unwound()
    for step in reversed(steps):
        if step.undo is not None:
            unwound = unwound.plus(undo_if_ours(job, step.undo_name, step.undo))
    return unwound


def undo_if_ours(job: Job, name: str, undo: Callable[[], Removal]) -> Removal:
    """Run one undo as a step, if the ledger confirms that this worker still has the attempt.

    Raises Abandoned if it does not: the operation's new worker continues it.
    """
    job.require_still_ours()
    return remove(job, name, undo)


def remove(job: Job, name: str, undo: Callable[[], Removal]) -> Removal:
    """Run a removal as a step; an error is reported as something left. Raises Abandoned."""
    job.journal.begin(name)
    try:
        removal = undo()
    except Abandoned:
        raise
    except Exception as error:  # noqa: BLE001 - reported, and the other undos still run
        failed = as_error(job, error)
        job.journal.end(ERROR, {"error": failed.message, "category": failed.category.value})
        left = failed.left or (f"{name}: {failed.message}",)
        return Removal(False, (), left, failed.remedy)
    detail = {"cleaned": list(removal.cleaned), "left": list(removal.left), **removal.detail}
    job.journal.end(SUCCESS if removal.gone else ERROR, detail)
    return removal


def _failure(job: Job, step: str, error: HypervisorError, unwound: Unwound) -> Failure:
    return Failure(
        category=error.category,
        message=error.message or RULES[error.category].operator,
        step=step,
        host=job.command.placed.host,
        upid=error.upid,
        log_tail=error.log_tail,
        cleaned=unwound.cleaned,
        clean=unwound.gone,
        left=tuple(dict.fromkeys(error.left + unwound.left)),
        remedy=error.remedy or unwound.remedy,
        verdict=error.verdict,
        owner_message=error.owner_message,
    )
