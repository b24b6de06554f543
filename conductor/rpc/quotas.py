"""Calls about quotas of projects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from common.context import RequestContext


class QuotaRpc(Protocol):
    """Quotas of projects."""

    def set_quota(
        self, ctxt: RequestContext, project_id: str, limits: Mapping[str, int], *, force: bool
    ) -> None:
        """Set limits (-1: none). Raises Invalid when one is below what is used, unless forced."""

    def set_quota_class(
        self, ctxt: RequestContext, class_name: str, limits: Mapping[str, int]
    ) -> None:
        """Replace limits of a quota class; those of ``default`` are all projects' defaults."""

    def reset_quota(self, ctxt: RequestContext, project_id: str, resources: Sequence[str]) -> None:
        """Set the limits of these resources back to the defaults."""
