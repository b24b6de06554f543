"""Keystone: the services' login, its roles, and the catalog."""

from __future__ import annotations

from collections.abc import Iterator

from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1.session import Session
from oslo_config import cfg

from common import credentials
from common.errors import ConfigurationError
from common.findings import Finding, Level

#: what clients look for, and why
CATALOG = {
    "compute": "servers",
    "placement": "scheduling",
    "image": "images",
    "network": "networks",
    "block-storage": "volumes",
    "volumev3": "volumes, for older clients",
}
#: type → the instance of micronova-api@ that serves it
SERVED = {"block-storage": "volume", "volumev3": "volume"}
_LOGIN = {
    "login_missing": "micronova config show placement",
    "login_refused": "# [placement] password = <that of its username in Keystone>",
    "keystone_unreachable": "# [placement] auth_url = <URL of Keystone>",
}
ROLES = frozenset({"admin", "service"})


def keystone(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Yield what is wrong with the login of `[placement]`, its roles, and the catalog.

    Nothing where no login is configured: the embedded cloud has it from its own Keystone.
    """
    if not conf.placement.auth_type:
        return
    try:
        session = credentials.session(conf, "placement")
        access = session.auth.get_access(session)  # type: ignore[union-attr]
    except ConfigurationError as error:
        yield _broken("login_missing", error.message)
        return
    except ksa_exceptions.Unauthorized as error:
        yield _broken("login_refused", f"It refuses the services' login: {error.message}")
        return
    except ksa_exceptions.ClientException as error:
        yield _broken("keystone_unreachable", f"It doesn't answer: {error}")
        return
    lacks = sorted(ROLES - set(access.role_names))
    if lacks:
        yield Finding(
            "role_missing",
            Level.BROKEN,
            "Keystone",
            f"The user {access.username} has not the role {', '.join(lacks)} on its project.",
            "Placement and the other services refuse its requests.",
            tuple(
                f"openstack role add --user {access.username} --project {access.project_name} "
                f"{role}"
                for role in lacks
            ),
        )
    yield from _catalog(session, {one["type"] for one in access.service_catalog.catalog})


def _catalog(session: Session, types: set[str]) -> Iterator[Finding]:
    for kind, what in CATALOG.items():
        if kind not in types:
            yield Finding(
                "catalog_lacks",
                Level.WARNING,
                "Keystone",
                f"Its catalog has no {kind}.",
                f"Clients don't find {what}.",
                (
                    f"openstack service create --name {kind} {kind} && "
                    f"openstack endpoint create {kind} public <URL of the API>",
                ),
            )
            continue
        url = str(session.get_endpoint(service_type=kind))
        try:
            session.get(url, authenticated=False, raise_exc=False, connect_retries=0)
        except ksa_exceptions.ClientException as error:
            yield Finding(
                "endpoint_dead",
                Level.WARNING,
                "Keystone",
                f"The catalog's {kind}, {url}, doesn't answer: {str(error).splitlines()[0]}",
                f"Clients find {what} and can't reach them.",
                (f"systemctl restart micronova-api@{SERVED.get(kind, kind)}",),
            )


def _broken(code: str, what: str) -> Finding:
    why = "No request is authenticated."
    return Finding(code, Level.BROKEN, "Keystone", what, why, (_LOGIN[code],))
