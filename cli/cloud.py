"""The cloud a command talks to: an openstacksdk connection, made when first needed."""

from __future__ import annotations

import argparse
import getpass
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from cli.errors import NO_CLOUD, CommandFailed


@dataclass(frozen=True)
class Region:
    """A region to connect to with a login that exists."""

    name: str
    auth: Any
    """keystoneauth's plugin, which has the token."""
    seconds: float
    """How long each request may take."""


class Cloud:
    """The cloud as commands use it. ``connect`` is called once, at the first use.

    ``pause`` is how a command waits (seconds) between two looks at what it waits for.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        pause: Callable[[float], None] = time.sleep,
        connect_region: Callable[[Region], Any] | None = None,
    ) -> None:
        self._connect = connect
        self._connect_region = connect_region
        self.pause = pause

    @cached_property
    def connection(self) -> Any:
        """The openstacksdk connection."""
        return self._connect()

    @property
    def compute(self) -> Any:
        """The compute API."""
        return self.connection.compute

    @property
    def image(self) -> Any:
        """The image API."""
        return self.connection.image

    @property
    def network(self) -> Any:
        """The network API."""
        return self.connection.network

    @property
    def identity(self) -> Any:
        """The identity API."""
        return self.connection.identity

    def find(self, kind: str, name_or_id: str, **query: Any) -> Any:
        """Return the one flavor, image, network, server … of a name or ID.

        :raises CommandFailed: there is none, or there are several; with what there is.
        """
        from cli.finding import find

        return find(self.connection, kind, name_or_id, **query)

    def supports(self, microversion: str) -> bool:
        """Return whether the compute API speaks this microversion, as far as the user lets it."""
        from openstack import utils

        return bool(utils.supports_microversion(self.compute, microversion))

    def access(self) -> Any:
        """Return the token and its catalog (keystoneauth's ``AccessInfo``)."""
        session = self.connection.session
        return session.auth.get_access(session)

    def project_id(self, name_or_id: str | None, domain: str | None = None) -> str:
        """Return a project's id; that of the token where none is named.

        A user who may not look projects up passes an id, which is then taken as it is.
        """
        if name_or_id is None:
            return str(self.connection.current_project_id)
        return self._identity_id("project", name_or_id, domain)

    def user_id(self, name_or_id: str, domain: str | None = None) -> str:
        """Return a user's id, by name or id; see ``project_id``."""
        return self._identity_id("user", name_or_id, domain)

    def _identity_id(self, kind: str, name_or_id: str, domain: str | None) -> str:
        from openstack import exceptions

        from cli.finding import look_up

        query: dict[str, Any] = {}
        if domain:
            query["domain_id"] = look_up(self.identity, "domain", "domains", domain).id
        try:
            return str(look_up(self.identity, kind, f"{kind}s", name_or_id, **query).id)
        except exceptions.ForbiddenException:
            return name_or_id

    def regions(self) -> list[str]:
        """Return the names of the catalog's regions that have a compute API, sorted."""
        catalog = self.access().service_catalog
        interface = self.connection.config.get_interface("compute")
        found = catalog.get_endpoints(service_type="compute", interface=interface)
        listed = (one for some in found.values() for one in some if one)
        return sorted({one.get("region_id") or one["region"] for one in listed})

    def in_region(self, name: str, seconds: float) -> Cloud:
        """Return the same cloud in a region, with the same login.

        :param seconds: how long each of its requests may take.
        """
        if self._connect_region is None:
            raise CommandFailed("These regions are looked at by micronova alone")
        region = Region(name, self.connection.session.auth, seconds)
        return Cloud(partial(self._connect_region, region), self.pause)

    def close(self) -> None:
        """Close the connection, where one was made."""
        if "connection" in self.__dict__:
            self.connection.close()


def config_of(options: argparse.Namespace, version: str) -> Any:
    """Return what ``openstack`` would make of the options and ``clouds.yaml``, by osc-lib's rules.

    Nothing is authenticated, and nothing asked. Options are those of ``cli.options.given``.
    """
    from osc_lib.cli.client_config import OSC_Config

    # about the SDK's own future, nothing that the user could change
    warnings.filterwarnings("ignore", module="openstack")
    given = vars(options)
    admin = given.get("endpoint") and given.get("token")
    config = OSC_Config(
        pw_func=_ask_password,
        app_name="micronova",
        app_version=version,
        override_defaults={
            "interface": "public",
            "auth_type": "admin_token" if admin else "password",
        },
    )
    asked = argparse.Namespace(**{"default_domain": "default", **given})
    return config.get_one(cloud=given.get("cloud", ""), argparse=asked, validate=False)


def connect(options: argparse.Namespace, version: str, of: Region | None = None) -> Any:
    """Return a connection from the global options, the OS_* variables and ``clouds.yaml``.

    :param of: the region, and its login, in place of the configured ones.
    :raises CommandFailed: no cloud is named, or what it needs is missing.
    """
    import openstack.connection

    from common.clients import direct
    from common.clients.paths import Session

    region = config_of(options, version)
    region.set_session_constructor(Session)
    known = {**region.config, **region.config["auth"]}
    if not any(known.get(name) for name in ("auth_url", "endpoint", "discovery_endpoint")):
        raise CommandFailed(NO_CLOUD)  # rather than to ask for a password that nobody would check
    # private attributes, which python-openstackclient sets as well
    if of is not None:
        region._auth = of.auth
        # not as an option: clouds.yaml may name fewer regions than the catalog has
        region.config |= {"region_name": of.name, "api_timeout": of.seconds}
    else:
        region._auth = _login(region)
    made = openstack.connection.Connection(config=region)
    if direct.is_of_this_machine(str(known.get("auth_url") or known.get("endpoint"))):
        direct.without_environment(made.session.session)  # no proxy reaches our loopback address
    return made


def _login(region: Any) -> Any:
    plugin = region._auth = region._openstack_config.load_auth_plugin(region.config)
    return _of_service_provider(region) if region.config.get("service_provider") else plugin


def _of_service_provider(region: Any) -> Any:
    """Return the authentication at another Keystone that trusts this cloud's."""
    from osc_lib.api.auth import get_keystone2keystone_auth

    names = ("project_id", "project_name", "project_domain_id", "project_domain_name")
    remote = {name: region.config.get(f"remote_{name}") for name in names}
    return get_keystone2keystone_auth(region._auth, region.config["service_provider"], **remote)


def _ask_password(prompt: str | None = None) -> str:
    if not sys.stdin.isatty():
        raise CommandFailed("No password: set it in clouds.yaml, OS_PASSWORD or --os-password")
    return getpass.getpass(f"{prompt or 'Password'}: ")
