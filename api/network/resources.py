"""The Network API's resources: networks, subnets and ports, as they are listed and shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import sqlalchemy as sa

from api.network import attributes, query
from api.network.attributes import Attribute, Record
from api.network.errors import (
    AddressGroupNotFound,
    DefaultRuleNotFound,
    SecurityGroupNotFound,
    SecurityGroupRuleNotFound,
    ShareNotFound,
    read_only,
)
from api.plain import Call, operation
from common.context import RequestContext
from common.errors import NetworkNotFound, NotFound, PortNotFound, SubnetNotFound
from common.resources.filtering import Filtering
from db.reading import reading
from db.reads import keyset
from db.reads.networks import address_groups, networks, security_groups
from db.reads.networks.networks import Network
from web.policy import Enforcer

Target = Mapping[str, Any]
#: the policy's target: what is another project's, or the operator's
TARGET: Target = {
    "project_id": "",
    "tenant_id": "",
    "network:project_id": "",
    "shared": False,
    "router:external": False,
}


def of_project(project_id: str, network_project_id: str = "") -> Target:
    """Return the policy target of a project's resource on another project's network."""
    return {
        **TARGET,
        "project_id": project_id,
        "tenant_id": project_id,
        "network:project_id": network_project_id,
    }


def target_of(record: Record) -> Target:
    """Return the target of a record."""
    if isinstance(record, Network):
        target = of_project(record.project_id, record.project_id)
        return {**target, "shared": record.shared, "router:external": record.external}
    return of_project(record.project_id, getattr(record, "network_project_id", ""))


@dataclass(frozen=True)
class Kind:
    """One kind of record: its name, attributes, query and error."""

    singular: str
    attributes: Sequence[Attribute]
    read: Callable[..., Sequence[Record]]
    missing: type[NotFound]
    several: str = ""
    absent: str = "{} {} could not be found."
    """The not-found message: a format with the kind and the ID."""

    @property
    def plural(self) -> str:
        """The collection's name."""
        return self.several or f"{self.singular}s"

    @property
    def path(self) -> str:
        """The collection's name in URLs."""
        return self.plural.replace("_", "-")

    @property
    def rule(self) -> str:
        """The policy rule that allows to see it."""
        return f"get_{self.singular}"


PORT = Kind("port", attributes.PORT, networks.list_ports, PortNotFound)
NETWORK = Kind("network", attributes.NETWORK, networks.list_networks, NetworkNotFound)
SUBNET = Kind("subnet", attributes.SUBNET, networks.list_subnets, SubnetNotFound)
SECURITY_GROUP = Kind(
    "security_group",
    attributes.SECURITY_GROUP,
    security_groups.list_groups,
    SecurityGroupNotFound,
    absent="{} {} does not exist",
)
SECURITY_GROUP_RULE = Kind(
    "security_group_rule",
    attributes.SECURITY_GROUP_RULE,
    security_groups.list_rules,
    SecurityGroupRuleNotFound,
    absent="{} {} does not exist",
)
ADDRESS_GROUP = Kind(
    "address_group",
    attributes.ADDRESS_GROUP,
    address_groups.list_address_groups,
    AddressGroupNotFound,
)
DEFAULT_RULE = Kind(
    "default_security_group_rule",
    attributes.DEFAULT_RULE,
    security_groups.list_default_rules,
    DefaultRuleNotFound,
    absent="Default Security Group rule {1} does not exist",
)
KINDS = (NETWORK, SUBNET, PORT, SECURITY_GROUP, SECURITY_GROUP_RULE)
SHARE = Kind(
    "rbac_policy",
    attributes.SHARE,
    networks.list_shares,
    ShareNotFound,
    "rbac_policies",
    "RBAC policy of type network with ID {1} not found",
)


#: where ports are filtered: what is shown in place of ``UNFILTERED``
_FILTERED: Mapping[str, Attribute] = {
    "network": attributes.NETWORK_FILTERED,
    "port": attributes.PORT_FILTERED,
}


def of_all_projects(policy: Enforcer, ctxt: RequestContext) -> bool:
    """Return whether a user may change the ports of all projects."""
    return any(policy.allows(ctxt, rule, {}) for rule in ("admin_only", "service_api"))


class Store:
    """The records of one kind that a user may see."""

    def __init__(
        self,
        kind: Kind,
        engine: sa.Engine,
        policy: Enforcer,
        filtering: Filtering[sa.Engine] | None = None,
    ) -> None:
        """``filtering``: knows whether ports are filtered by their security groups; None: not."""
        self.kind = kind
        self._filtering = filtering
        self._engine = engine
        self._policy = policy

    def visible(self, ctxt: RequestContext) -> list[Attribute]:
        """Return the attributes that the user may see."""
        filtered = self.kind.singular in _FILTERED and self.is_filtered()
        return [
            _FILTERED.get(self.kind.singular, each)
            if filtered and each is attributes.UNFILTERED
            else each
            for each in self.kind.attributes
            if each.rule is None or self._policy.allows(ctxt, each.rule, TARGET)
        ]

    def is_filtered(self) -> bool:
        """Return whether ports are filtered by their security groups."""
        return self._filtering is not None and not self._filtering.why_not(self._engine)

    def viewer(self, ctxt: RequestContext) -> networks.Viewer:
        """Return the user's project, and whose networks the policy shows to the user."""

        def allowed(**target: Any) -> bool:
            return self._policy.allows(ctxt, self.kind.rule, {**TARGET, **target})

        own = ctxt.project_id or ""
        return networks.Viewer(
            own,
            everything=allowed(),
            own=bool(own) and allowed(**of_project(own)),
            shared=allowed(shared=True),
            external=allowed(**{"router:external": True}),
        )

    def read(self, ctxt: RequestContext, asked: query.Query) -> Sequence[Record]:
        """Return the records that match and that the user may see. Raises the kind's `missing`."""
        if not asked.possible:
            return []
        viewer = self.viewer(ctxt)
        with reading(self._engine) as connection:
            try:
                return self.kind.read(connection, asked.where, asked.order, asked.page, viewer)
            except keyset.MarkerNotFound as error:
                raise self._missing(str(asked.page.marker)) from error

    def find(self, ctxt: RequestContext, record_id: str) -> Record:
        """Return one record. Raises the kind's `missing`, also where the policy hides it."""
        found = self.read(ctxt, query.Query(where={"id": [record_id]}))
        if not found:
            raise self._missing(record_id)
        return found[0]

    def find_all(self, ctxt: RequestContext, record_ids: Sequence[str]) -> Mapping[str, Record]:
        """Return records by their IDs. Raises the kind's `missing`."""
        found = self._by_id(ctxt, record_ids)
        for one in record_ids:
            if one not in found:
                raise self._missing(one)
        return found

    def shown_one(self, ctxt: RequestContext, record_id: str) -> dict[str, Any]:
        """Return a record as it is shown, below its kind's name. Raises the kind's `missing`."""
        return {self.kind.singular: show(self.find(ctxt, record_id), self.visible(ctxt))}

    def shown(self, ctxt: RequestContext, record_ids: Sequence[str]) -> list[dict[str, Any]]:
        """Return those of these records that are still there, as they are shown."""
        found, visible = self._by_id(ctxt, record_ids), self.visible(ctxt)
        return [show(found[one], visible) for one in record_ids if one in found]

    def made(
        self, ctxt: RequestContext, record_ids: Sequence[str], *, many: bool
    ) -> dict[str, Any]:
        """Return new records as the answer to a POST of one, or of a list."""
        if many:
            return {self.kind.plural: self.shown(ctxt, record_ids)}
        return self.shown_one(ctxt, record_ids[0])

    def _by_id(self, ctxt: RequestContext, record_ids: Sequence[str]) -> Mapping[str, Record]:
        asked = query.Query(where={"id": sorted(set(record_ids))})
        return {each.id: each for each in self.read(ctxt, asked)}

    def has_default_group(self, project_id: str) -> bool:
        """Return whether a project has its default security group."""
        with reading(self._engine) as connection:
            return security_groups.has_default(connection, project_id)

    def project_of_group(self, ctxt: RequestContext, group_id: str) -> str:
        """Return whose a security group is. Raises SecurityGroupNotFound."""
        groups = Store(SECURITY_GROUP, self._engine, self._policy)
        return str(getattr(groups.find(ctxt, group_id), "project_id", ""))

    def _missing(self, record_id: str) -> NotFound:
        noun = self.kind.singular.replace("_", " ").capitalize()
        return self.kind.missing(self.kind.absent.format(noun, record_id))


def show(
    record: Record, visible: Sequence[Attribute], fields: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Return a record's visible attributes; ``fields``: of these alone, empty: all."""
    return {
        each.name: each.value(record)
        for each in visible
        if each.shown and (not fields or each.name in fields)
    }


class OfKind:
    """A resource of one kind of record."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def noun(self) -> str:
        """What the rules of its operations name."""
        return self._store.kind.singular


class Collection(OfKind):
    """A list of one kind."""

    @operation(asks=("get_{noun}",))
    def on_get(self, call: Call) -> Any:
        """List records, one page where `limit` is given."""
        return self.listed(call)

    def listed(self, call: Call) -> Any:
        """Return the records that the query asks for, and links to other pages."""
        visible = self._store.visible(call.ctxt)
        asked = query.parse(call.pairs, visible)
        found = self._store.read(call.ctxt, asked)
        plural = self._store.kind.plural
        body: dict[str, Any] = {plural: [show(each, visible, asked.fields) for each in found]}
        url = f"{call.root}{call.path}"
        links = query.links(url, call.pairs, [each.id for each in found], asked.page)
        if links:
            body[f"{plural}_links"] = links
        return body

    @operation()
    def on_post(self, call: Call) -> NoReturn:
        """Refuse a change."""
        read_only(f"create_{self._store.kind.singular}")


class Item(OfKind):
    """One record of a kind."""

    @operation(asks=("get_{noun}",))
    def on_get(self, call: Call, record_id: str) -> Any:
        """Show a record, or the attributes that `fields` names."""
        fields = frozenset(value for name, value in call.pairs if name == "fields" and value)
        found = self._store.find(call.ctxt, record_id)
        body = show(found, self._store.visible(call.ctxt), fields)
        return {self._store.kind.singular: body}

    @operation()
    def on_put(self, call: Call, record_id: str) -> NoReturn:
        """Refuse a change; 404 where the record isn't visible."""
        self._store.find(call.ctxt, record_id)
        read_only(f"update_{self._store.kind.singular}")

    @operation()
    def on_delete(self, call: Call, record_id: str) -> NoReturn:
        """Refuse a change; 404 where the record isn't visible."""
        self._store.find(call.ctxt, record_id)
        read_only(f"delete_{self._store.kind.singular}")
