"""Errors in Neutron's form: `{"NeutronError": {"type", "message", "detail"}}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import falcon

from common.errors import (
    Forbidden,
    Invalid,
    MicronovaError,
    NetworkNotFound,
    NotFound,
    PortNotFound,
    SubnetNotFound,
)
from web.errors import Fault, Faults
from web.wsgi import send_json


class QuotaNotFound(NotFound):
    """The project has no limits of its own."""

    code = "micronova.network_quota_not_found"
    sentence = "Quota could not be found."


class SecurityGroupNotFound(NotFound):
    """No such security group of this project."""

    code = "micronova.security_group_not_found"
    sentence = "Security group could not be found."


class AddressGroupNotFound(NotFound):
    """No such address group of this project."""

    code = "micronova.address_group_not_found"
    sentence = "Address group could not be found."


class DefaultRuleNotFound(NotFound):
    """No such default rule of security groups."""

    code = "micronova.default_security_group_rule_not_found"
    sentence = "Default security group rule could not be found."


class SecurityGroupRuleNotFound(NotFound):
    """No such rule of this project's groups."""

    code = "micronova.security_group_rule_not_found"
    sentence = "Security group rule could not be found."


class ShareNotFound(NotFound):
    """A network isn't shared so, or not by this project."""

    code = "micronova.network_share_not_found"
    sentence = "RBAC policy could not be found."


class BadRequest(Invalid):
    """The limit of a page is not a number."""

    code = "micronova.bad_request"


class InvalidInput(Invalid):
    """A value doesn't have its attribute's type."""

    code = "micronova.invalid_input"


#: class → Neutron's type; others name it in their details, or have their status's
_TYPES: Mapping[type[Exception], str] = {
    BadRequest: "BadRequest",
    InvalidInput: "InvalidInput",
    NetworkNotFound: "NetworkNotFound",
    SubnetNotFound: "SubnetNotFound",
    PortNotFound: "PortNotFound",
    ShareNotFound: "RbacPolicyNotFound",
    QuotaNotFound: "TenantQuotaNotFound",
    SecurityGroupNotFound: "SecurityGroupNotFound",
    AddressGroupNotFound: "AddressGroupNotFound",
    DefaultRuleNotFound: "DefaultSecurityGroupRuleNotFound",
    SecurityGroupRuleNotFound: "SecurityGroupRuleNotFound",
}
_TYPES_OF_STATUS: Mapping[int, str] = {
    400: "HTTPBadRequest",
    401: "HTTPUnauthorized",
    403: "PolicyNotAuthorized",
    404: "HTTPNotFound",
    405: "HTTPMethodNotAllowed",
    409: "Conflict",
    413: "HTTPRequestEntityTooLarge",
    429: "HTTPTooManyRequests",
    500: "HTTPInternalServerError",
    501: "HTTPNotImplemented",
    503: "ServiceUnavailable",
}


def _form(req: falcon.Request, resp: falcon.Response, fault: Fault) -> None:
    error = fault.error
    named = error.details.get("type") if isinstance(error, MicronovaError) else None
    name = named or _TYPES.get(type(error)) or _TYPES_OF_STATUS.get(fault.status, "HTTPError")
    body = {"NeutronError": {"type": name, "message": fault.message, "detail": ""}}
    send_json(resp, body, falcon.code_to_http_status(fault.status))


FAULTS = Faults(_form, "Request Failed: internal server error; its ID is {}.")


def read_only(rule: str) -> NoReturn:
    """Refuse a change, as Neutron does where its policy forbids one: raises Forbidden."""
    verb, _, noun = rule.partition("_")
    done = {"create": "made", "update": "changed", "delete": "deleted"}[verb]
    raise Forbidden(
        f"rule:{rule} is disallowed by policy: no {noun.replace('_', ' ')} can be {done} through "
        "this API, which is read-only."
    )
