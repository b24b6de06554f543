"""The real Keystone for tests: prepared in a folder, on a free port, stopped at the end."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keystoneauth1.access import AccessInfo
from keystoneauth1.identity.base import BaseIdentityPlugin
from keystoneauth1.identity.v3 import Password
from keystoneauth1.session import Session
from oslo_config import cfg

from common.clients import credentials
from identity.clouds import project_id, service_credentials, write_client_files
from identity.keystone import Keystone
from identity.layout import catalog
from identity.passwords import load_passwords
from web import auth

START_SECONDS = 240


@dataclasses.dataclass(frozen=True)
class RunningKeystone:
    """A Keystone that answers; `state_dir` also holds clouds.yaml and openrc."""

    server: Keystone
    state_dir: Path
    auth_url: str
    base_url: str
    passwords: Mapping[str, str] = dataclasses.field(repr=False)

    def session(self, user: str = "demo", project: str = "demo") -> Session:
        """Return a session logged in as `user` on `project`."""
        return Session(self._password(user, project_name=project, project_domain_name="Default"))

    def system_session(self, user: str = "admin") -> Session:
        """Return a session with a system-scoped token."""
        return Session(self._password(user, system_scope="all"))

    def token(self, user: str = "demo", project: str = "demo") -> str:
        """Return a new token of `user` on `project`."""
        token = self.session(user, project).get_token()
        assert token is not None
        return str(token)

    def configure(self, conf: cfg.ConfigOpts, *groups: str) -> None:
        """Let `[keystone_authtoken]` and the given client groups of `conf` use this Keystone."""
        login = service_credentials(self.auth_url, self.passwords)
        uri = {"www_authenticate_uri": self.auth_url}
        credentials.set_defaults(conf, auth.GROUP, login | uri)
        for group in groups:
            credentials.set_defaults(conf, group, login)

    def _password(self, user: str, **scope: Any) -> Password:
        return Password(
            auth_url=self.auth_url,
            username=user,
            password=self.passwords[user],
            user_domain_name="Default",
            **scope,
        )


def access_of(session: Session) -> AccessInfo:
    """Return what Keystone says of the session's token: who, where, roles, catalog."""
    assert isinstance(session.auth, BaseIdentityPlugin)
    return session.auth.get_access(session)


@contextlib.contextmanager
def running_keystone(
    state_dir: Path, base_url: str = "http://127.0.0.1:8774", port: int = 0
) -> Iterator[RunningKeystone]:
    """Run Keystone in `state_dir`, with the APIs below `base_url` in its catalog.

    The first start in an empty folder takes about six seconds, so share it: once per session.
    """
    server = Keystone(state_dir, port=port)
    server.listen()
    try:
        passwords = load_passwords(state_dir)
        steps: list[str] = []
        server.prepare(catalog(server.auth_url, base_url), passwords, steps.append)
        server.start()
        server.wait_ready(START_SECONDS)
        write_client_files(
            state_dir,
            server.auth_url,
            passwords,
            project_id(server.auth_url, passwords),
        )
        yield RunningKeystone(server, state_dir, server.auth_url, base_url, passwords)
    finally:
        server.stop()
