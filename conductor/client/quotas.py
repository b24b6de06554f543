"""Calls about quotas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from common.context import RequestContext
from conductor.client.base import Base
from conductor.rpc_api import QuotaRpc


class QuotaCalls(Base):
    """See ``conductor.rpc_api.QuotaRpc``."""

    def set_quota(
        self, ctxt: RequestContext, project_id: str, limits: Mapping[str, int], *, force: bool
    ) -> None:
        """Set limits (-1: none). Raises Invalid when one is below what is used, unless forced."""
        self._rpc.call(
            ctxt, QuotaRpc.set_quota, project_id=project_id, limits=dict(limits), force=force
        )

    def set_quota_class(
        self, ctxt: RequestContext, class_name: str, limits: Mapping[str, int]
    ) -> None:
        """Replace limits of a quota class; those of ``default`` are all projects' defaults."""
        self._rpc.call(ctxt, QuotaRpc.set_quota_class, class_name=class_name, limits=dict(limits))

    def reset_quota(self, ctxt: RequestContext, project_id: str, resources: Iterable[str]) -> None:
        """Set the limits of these resources back to the defaults."""
        self._rpc.call(
            ctxt, QuotaRpc.reset_quota, project_id=project_id, resources=list(resources)
        )
