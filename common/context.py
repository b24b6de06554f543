"""The request context: user, project, roles and request ID of messages and log lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from oslo_context import context as oslo_context

from common import ids
from common.resources.states import ResourceType


class RequestContext(oslo_context.RequestContext):
    """An oslo.context request context that crosses RPC as plain values."""

    def __init__(
        self,
        *args: Any,
        resource_type: str | None = None,
        resource_id: str | None = None,
        asked: Mapping[str, Any] | None = None,
        traceparent: str | None = None,
        only_look: bool = False,
        if_revision: int | None = None,
        remote_address: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        #: the HTTP request: method, path, time (ISO 8601), and the status of a success
        self.asked = asked
        #: the span of the caller's that it belongs to: W3C's header, checked
        self.traceparent = traceparent
        #: whether a command may only look: it succeeds if what it asks is so already
        self.only_look = only_look
        #: the only revision of a record that may be changed; None: any
        self.if_revision = if_revision
        #: from where the request came, as far as proxies are trusted; None: nobody sent it
        self.remote_address = remote_address
        #: what is being worked on, for the log line: see ``common.resources.states.ResourceType``
        self.resource_type, self.resource_id = resource_type, resource_id
        #: of a message: the broker's user who sent it; see ``common.rpc.senders``
        self.sender: str | None = None

    def about(self, resource_type: str, resource_id: str) -> None:
        """Have log lines name what is being worked on."""
        self.resource_type, self.resource_id = resource_type, resource_id

    def to_message(self) -> dict[str, Any]:
        """Return plain values for a message, without the token: services have their own."""
        return {
            "request_id": self.request_id,
            "global_request_id": self.global_request_id,
            "user_id": self.user_id,
            "project_id": self.project_id,
            "user_name": self.user_name,
            "project_name": self.project_name,
            "user_domain_id": self.user_domain_id,
            "project_domain_id": self.project_domain_id,
            "system_scope": self.system_scope,
            "roles": list(self.roles),
            "is_admin": self.is_admin,
            "resource_type": self.resource_type,
            "resource_id": self.resource_id,
            "asked": self.asked,
            "traceparent": self.traceparent,
            "only_look": self.only_look,
            "if_revision": self.if_revision,
            "remote_address": self.remote_address,
        }

    @classmethod
    def from_message(cls, data: Mapping[str, Any]) -> RequestContext:
        """Rebuild a context and make it this thread's current one (for logs)."""
        made = cls(**{key: value for key, value in data.items() if key in _FIELDS})
        made.sender = data.get("sender")
        return made

    def get_logging_values(self) -> dict[str, Any]:
        """Return the values that oslo.log's format may name: identifiers in their form only."""
        values: dict[str, Any] = super().get_logging_values()
        kind = self.resource_type if self.resource_type in list(ResourceType) else None
        values |= {"resource_type": kind or "resource", "resource_id": self.resource_id}
        forms = {**_IDENTIFIERS, "resource_id": _NAMES.get(str(kind), ids.is_uuid)}
        for name, is_one in forms.items():
            values[name] = values[name] if values[name] and is_one(str(values[name])) else "-"
        return values


#: Keystone's are UUIDs without dashes; of users and groups of LDAP, and of federated ones, SHA-256
_HEXADECIMAL = re.compile(r"[0-9a-f]{32}|[0-9a-f]{64}")
#: forms of the IDs of resources that have no UUID
_NAMES: Mapping[str, Callable[[str], object]] = {
    ResourceType.HOST: re.compile(r"[A-Za-z0-9._-]{1,255}").fullmatch,
    ResourceType.TEMPLATE: re.compile(r"[A-Za-z0-9._-]{1,255}/[0-9]{1,10}").fullmatch,
}


def _is_identifier(text: str) -> bool:
    return ids.is_uuid(text) or _HEXADECIMAL.fullmatch(text) is not None


_IDENTIFIERS: Mapping[str, Callable[[str], object]] = {
    "request_id": ids.is_request_id,
    "global_request_id": ids.is_request_id,
    "resource_uuid": ids.is_uuid,
    "project": _is_identifier,
    "project_id": _is_identifier,
    "user": _is_identifier,
}

_FIELDS = frozenset(RequestContext(overwrite=False).to_message())


def internal(request_id: str | None = None) -> RequestContext:
    """Return the context of internal work: periodic tasks, audits, healing."""
    return RequestContext(
        request_id=request_id, is_admin=True, roles=["admin", "service"], overwrite=False
    )
