"""The Network API's resources: networks, subnets and ports to read, refusals of the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import sqlalchemy as sa

from api.network import attributes, query
from api.network.attributes import Attribute, Record
from api.network.errors import PortNotFound, SubnetNotFound, read_only
from api.plain import Call, operation
from common.context import RequestContext
from common.errors import NetworkNotFound, NotFound
from db.reading import reading
from db.reads import keyset, networks
from web.policy import Enforcer

#: what a rule may ask of a network, its subnets, and another project's port
_TARGET = {
    "project_id": "",
    "tenant_id": "",
    "network:project_id": "",
    "shared": True,
    "router:external": False,
}


@dataclass(frozen=True)
class Kind:
    """One noun: how it is called, shown, read and missed."""

    singular: str
    attributes: Sequence[Attribute]
    read: Callable[..., Sequence[Record]]
    missing: type[NotFound]
    of_project: bool = False
    """Whether a project sees its own only."""

    @property
    def plural(self) -> str:
        """The collection's name."""
        return f"{self.singular}s"

    @property
    def rule(self) -> str:
        """The rule that shows it."""
        return f"get_{self.singular}"


KINDS = (
    Kind("network", attributes.NETWORK, networks.list_networks, NetworkNotFound),
    Kind("subnet", attributes.SUBNET, networks.list_subnets, SubnetNotFound),
    Kind("port", attributes.PORT, networks.list_ports, PortNotFound, of_project=True),
)


class Store:
    """The records of one kind as one client may see them."""

    def __init__(self, kind: Kind, engine: sa.Engine, policy: Enforcer) -> None:
        self.kind = kind
        self._engine = engine
        self._policy = policy

    def visible(self, ctxt: RequestContext) -> list[Attribute]:
        """The attributes that who asks may see."""
        return [
            each
            for each in self.kind.attributes
            if each.rule is None or self._policy.allows(ctxt, each.rule, _TARGET)
        ]

    def read(self, ctxt: RequestContext, asked: query.Query) -> Sequence[Record]:
        """The records that are asked for and may be seen. Raises the kind's `missing`."""
        visible = networks.EVERYTHING
        if not self._policy.allows(ctxt, self.kind.rule, _TARGET):
            own = _TARGET | {"project_id": ctxt.project_id, "tenant_id": ctxt.project_id}
            if not self.kind.of_project or not self._policy.allows(ctxt, self.kind.rule, own):
                return []
            visible = {"project_id": [ctxt.project_id]}
        if not asked.possible:
            return []
        with reading(self._engine) as connection:
            try:
                return self.kind.read(connection, asked.where, asked.order, asked.page, visible)
            except keyset.MarkerNotFound as error:
                raise self._missing(str(asked.page.marker)) from error

    def find(self, ctxt: RequestContext, record_id: str) -> Record:
        """One record. Raises the kind's `missing`, also where it may not be seen."""
        found = self.read(ctxt, query.Query(where={"id": [record_id]}))
        if not found:
            raise self._missing(record_id)
        return found[0]

    def _missing(self, record_id: str) -> NotFound:
        return self.kind.missing(
            f"{self.kind.singular.capitalize()} {record_id} could not be found."
        )


def _show(record: Record, visible: Sequence[Attribute], fields: frozenset[str]) -> dict[str, Any]:
    return {each.name: each.value(record) for each in visible if not fields or each.name in fields}


class Collection:
    """A list of one kind."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @operation()
    def on_get(self, call: Call) -> Any:
        """The list, or a page of it."""
        visible = self._store.visible(call.ctxt)
        asked = query.parse(call.pairs, visible)
        found = self._store.read(call.ctxt, asked)
        plural = self._store.kind.plural
        body: dict[str, Any] = {plural: [_show(each, visible, asked.fields) for each in found]}
        url = f"{call.root}{call.path}"
        links = query.links(url, call.pairs, [each.id for each in found], asked.page)
        if links:
            body[f"{plural}_links"] = links
        return body

    @operation()
    def on_post(self, call: Call) -> NoReturn:
        """Refused."""
        read_only(f"create_{self._store.kind.singular}")


class Item:
    """One of a kind."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @operation()
    def on_get(self, call: Call, record_id: str) -> Any:
        """Show it, or those of its attributes that `fields` names."""
        fields = frozenset(value for name, value in call.pairs if name == "fields" and value)
        found = self._store.find(call.ctxt, record_id)
        body = _show(found, self._store.visible(call.ctxt), fields)
        return {self._store.kind.singular: body}

    @operation()
    def on_put(self, call: Call, record_id: str) -> NoReturn:
        """Refused where it is visible, else not found."""
        self._store.find(call.ctxt, record_id)
        read_only(f"update_{self._store.kind.singular}")

    @operation()
    def on_delete(self, call: Call, record_id: str) -> NoReturn:
        """Refused where it is visible, else not found."""
        self._store.find(call.ctxt, record_id)
        read_only(f"delete_{self._store.kind.singular}")


class Nothing:
    """A collection that clients look into and that is always empty."""

    def __init__(self, plural: str) -> None:
        self._plural = plural

    @operation()
    def on_get(self, call: Call) -> Any:
        """An empty list."""
        return {self._plural: []}

    @operation()
    def on_post(self, call: Call) -> NoReturn:
        """Refused."""
        read_only(f"create_{self._plural[:-1]}")
