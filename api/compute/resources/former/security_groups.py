"""`/os-security-groups` and `/os-security-group-rules`, before 2.36: the network API's groups.

Facts from nova's security_groups.py and network/security_group_api.py.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any, NoReturn
from urllib.parse import unquote

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.schemas import security_groups as schemas
from api.compute.views import security_groups as views
from api.network.resources import of_project
from api.network.security_groups import checked_name
from common import digits, ids
from common.errors import Conflict, Forbidden, Invalid, NotFound
from common.resources.security_rules import INGRESS, IPV4, IPV6, Rule
from conductor.rpc.networks.security_groups import NewRule, NewSecurityGroup, SecurityGroupChange
from db.reads.networks import security_groups
from db.reads.networks.networks import Viewer
from db.reads.networks.security_groups import SecurityGroup, SecurityGroupRule

_UNTIL = "2.35"
_PROTOCOLS = ("tcp", "udp", "icmp")
_PORTS = (1, 65535)
_ICMP = (-1, 255)
#: the default prefix of a rule without a group
_EVERYWHERE = "0.0.0.0/0"


class SecurityGroups:
    """The groups of a project."""

    @operation("os-security-groups:get", until=_UNTIL, query=schemas.LIST_GROUPS)
    def index(self, call: Call) -> Any:
        """List the project's groups, administrators with `all_tenants` those of all."""
        project = call.project
        everybody = call.is_admin and "all_tenants" in call.query
        if project and not call.read(security_groups.has_default, project):
            call.conductor.ensure_default_security_group(call.ctxt, project)
        found = call.read(
            security_groups.list_groups,
            {} if everybody else {"project_id": [project]},
            [("project_id", False), ("name", False)],
        )
        first = call.query.number("offset") or 0
        limit = min(call.query.number("limit") or call.max_limit, call.max_limit)
        return {"security_groups": views.groups(found[first : first + limit], call.read)}

    @operation("os-security-groups:show", until=_UNTIL)
    def show(self, call: Call, group: str) -> Any:
        """Show a group."""
        return _shown(call, _group(call, group).id)

    @operation("os-security-groups:create", until=_UNTIL, body=schemas.CREATE_GROUP)
    def create(self, call: Call) -> Any:
        """Make a group."""
        asked = call.body["security_group"]
        project_id = call.project
        call.check("create_security_group", of_project(project_id))
        try:
            new = NewSecurityGroup(project_id, checked_name(asked["name"]), asked["description"])
            (made,) = call.conductor.create_security_groups(call.ctxt, [new])
        except Conflict as error:
            raise Forbidden(error.message) from error
        return _shown(call, made)

    @operation("os-security-groups:update", until=_UNTIL, body=schemas.CREATE_GROUP)
    def update(self, call: Call, group: str) -> Any:
        """Rename or describe a group."""
        asked, found = call.body["security_group"], _group(call, group)
        call.check("update_security_group", of_project(found.project_id))

        def change() -> None:
            name = checked_name(asked["name"]) if asked["name"] != found.name else found.name
            wanted = SecurityGroupChange(name, asked["description"])
            call.conductor.update_security_group(call.ctxt, found.id, wanted)

        _refused_as_invalid(change)
        return _shown(call, found.id)

    @operation("os-security-groups:delete", until=_UNTIL, status=202)
    def delete(self, call: Call, group: str) -> None:
        """Delete a group that no port is in."""
        found = _group(call, group)
        call.check("delete_security_group", of_project(found.project_id))
        _refused_as_invalid(lambda: call.conductor.delete_security_group(call.ctxt, found.id))


class SecurityGroupRules:
    """What groups let in."""

    @operation("os-security-groups:rule:create", until=_UNTIL, body=schemas.CREATE_RULE)
    def create(self, call: Call) -> Any:
        """Let something in."""
        asked = call.body["security_group_rule"]
        group = _group(call, asked["parent_group_id"])
        call.check("create_security_group_rule", of_project(group.project_id))
        remote = asked.get("group_id")
        if remote is not None:
            _group(call, remote)
        new = NewRule(group.id, _rule(asked, remote))
        try:
            (made,) = call.conductor.create_security_group_rules(
                call.ctxt, group.project_id, [new]
            )
        except Conflict as error:
            if error.details.get("type") == "SecurityGroupRuleExists":
                raise Invalid(f"This rule already exists in group {group.id}") from error
            raise Forbidden(error.message) from error
        return {"security_group_rule": views.rule(_the_rule(call, made), call.read)}

    @operation("os-security-groups:rule:delete", until=_UNTIL, status=202)
    def delete(self, call: Call, rule: str) -> None:
        """Delete a rule."""
        found = _the_rule(call, rule)
        call.check("delete_security_group_rule", of_project(found.project_id))
        call.conductor.delete_security_group_rule(call.ctxt, found.id)


def _viewer(call: Call) -> Viewer:
    own = call.project
    call.ctxt.is_admin = call.is_admin
    return Viewer(own, everything=call.is_admin, own=bool(own), shared=False, external=False)


def _id(text: str) -> str:
    if not ids.is_uuid(text):
        raise Invalid("Security group id should be uuid")
    return text


def _group(call: Call, group_id: str) -> SecurityGroup:
    found = call.read(security_groups.list_groups, {"id": [_id(group_id)]}, viewer=_viewer(call))
    return found[0] if found else _no_group(group_id)


def _the_rule(call: Call, rule_id: str) -> SecurityGroupRule:
    found = call.read(security_groups.list_rules, {"id": [_id(rule_id)]}, viewer=_viewer(call))
    if not found:
        raise NotFound(f"Security group rule {rule_id} does not exist")
    return found[0]


def _no_group(group_id: str) -> NoReturn:
    raise NotFound(f"Security group {group_id} does not exist")


def _shown(call: Call, group_id: str) -> Any:
    return {"security_group": views.groups([_group(call, group_id)], call.read)[0]}


def _refused_as_invalid(change: Callable[[], None]) -> None:
    """Carry out a change; what the network API refuses with 409 is 400 here."""
    try:
        change()
    except Conflict as error:
        raise Invalid(error.message) from error


def _rule(asked: Any, remote: str | None) -> Rule:
    """Return the rule that is asked for, in Nova's terms. Raises Invalid."""
    protocol, first, last = asked.get("ip_protocol"), asked.get("from_port"), asked.get("to_port")
    if remote is not None and first is None and last is None:
        ends = {"icmp": _ICMP[:1] * 2, "tcp": _PORTS, "udp": _PORTS}
        first, last = ends.get(str(protocol or "").lower(), (None, None))
    if not (protocol and first is not None and last is not None):
        if remote is None:
            raise Invalid("Not enough parameters to build a valid rule.")
        return Rule(INGRESS, IPV4, remote_group_id=remote)
    name = str(protocol).lower()
    ports = _ports(name, first, last)
    prefix, family, cidr = (None, IPV4, None) if remote else _cidr(asked.get("cidr"))
    return Rule(INGRESS, family, name, *ports, prefix, cidr, remote)


def _whole(value: Any) -> int:
    """Return an integer, given as a number or as text. Raises TypeError, ValueError."""
    found = digits.integer(value) if isinstance(value, str) else int(value)
    if found is None:
        raise ValueError(value)
    return found


def _ports(protocol: str, first: Any, last: Any) -> tuple[int | None, int | None]:
    """Return the range, or type and code; none if it is all of them. Raises Invalid."""
    try:
        begin, end = _whole(first), _whole(last)
    except (TypeError, ValueError) as error:
        what = (
            "Type and Code must be integers for ICMP protocol type"
            if protocol == "icmp"
            else "To and From ports must be integers"
        )
        raise Invalid(f"Invalid input received: {what}") from error
    if protocol not in _PROTOCOLS:
        raise Invalid(f"Invalid IP protocol {protocol}.")
    least, most = _ICMP if protocol == "icmp" else _PORTS
    why = ""
    if protocol != "icmp" and begin > end:
        why = "Former value cannot be greater than the later"
    elif not (least <= begin <= most and least <= end <= most):
        why = (
            "For ICMP, the type:code must be valid"
            if protocol == "icmp"
            else f"Valid {protocol.upper()} ports should be between 1-65535"
        )
    elif protocol == "icmp" and begin < 0 <= end:
        why = "an ICMP code needs a type"
    if why:
        raise Invalid(f"Invalid port range {begin}:{end}. {why}")
    if (begin, end) == _PORTS:
        return None, None
    return (None if begin < 0 else begin), (None if end < 0 else end)


def _cidr(given: Any) -> tuple[str, str, str]:
    """Return a prefix, its family, and itself without the bits of a host. Raises Invalid."""
    text = unquote(str(given)) if given else _EVERYWHERE
    try:
        if "/" not in text or "%" in text:
            raise ValueError(text)
        found = ipaddress.ip_interface(text)
    except ValueError as error:
        raise Invalid(f"Invalid cidr {text}.") from error
    if found.network.prefixlen == 0 and int(found.ip) != 0:
        raise Invalid(f"Bad prefix for network in cidr {text}")
    return text, IPV6 if found.version == 6 else IPV4, str(found.network)
