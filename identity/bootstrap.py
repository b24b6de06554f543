"""Makes Keystone's database, keys, users and catalog, in a child process of Keystone's server.

It does what `keystone-manage db_sync`, `fernet_setup`, `credential_setup` and `bootstrap` do.
Everything here may run again on a database that already has all or part of it.
"""

from __future__ import annotations

import json
import os
import sqlite3
import uuid
from typing import Any

from common.log import escape_output
from common.process.child import report
from identity.layout import GRANTS, INTERFACES, PROJECTS, SYSTEM_GRANTS, Job

#: bcrypt's least cost, for the passwords that are made here: they are random, and stand in clear
#: text beside the hashes, so that a higher one protects nothing and makes each login take 0.3 s.
#: Users that are created later get Keystone's own cost.
HASH_ROUNDS = 4


def make(text: str) -> None:
    """Carry out a job, given as JSON; each step is reported to the parent."""
    job = Job.from_dict(json.loads(text))
    report(step="creating the database")
    _configure()
    _create_database()
    report(step="creating the keys")
    _create_keys()
    report(step="creating roles, projects and users")
    bootstrapper = _bootstrap(job)
    _create_users(job, bootstrapper)
    report(step="creating the catalog")
    _create_catalog(job)


def _configure() -> None:
    import keystone.server

    path = os.path.join(os.environ["OS_KEYSTONE_CONFIG_DIR"], "keystone.conf")
    keystone.server.configure(config_files=[path])
    escape_output()
    # One fsync per commit is most of the time here; the parent syncs the file once
    # before it marks the database as complete.
    import keystone.conf

    keystone.conf.CONF.set_override("sqlite_synchronous", False, group="database")
    keystone.conf.CONF.set_override("password_hash_rounds", HASH_ROUNDS, group="identity")


def _create_database() -> None:
    from keystone.common.sql import upgrades

    upgrades.offline_sync_database_to_version()
    # Kept in the file: readers and the writer don't wait for each other.
    path = os.path.join(os.environ["OS_KEYSTONE_CONFIG_DIR"], "keystone.db")
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
    finally:
        connection.close()


def _create_keys() -> None:
    import keystone.conf
    from keystone.common import fernet_utils
    from keystone.credential.providers import fernet as credential_fernet

    conf = keystone.conf.CONF
    for group, limit in (  # receipts use the tokens' keys
        ("fernet_tokens", conf.fernet_tokens.max_active_keys),
        ("credential", credential_fernet.MAX_ACTIVE_KEYS),
    ):
        repository = fernet_utils.FernetUtils(conf[group].key_repository, limit, group)
        repository.create_key_directory()
        repository.initialize_key_repository()


def _bootstrap(job: Job) -> Any:
    from keystone.cmd.bootstrap import Bootstrapper

    bootstrapper = Bootstrapper()
    bootstrapper.admin_username = "admin"
    bootstrapper.admin_password = job.passwords["admin"]
    bootstrapper.project_name = "admin"
    bootstrapper.admin_role_name = "admin"
    bootstrapper.region_id = job.region
    bootstrapper.immutable_roles = True
    bootstrapper.bootstrap()
    return bootstrapper


def _providers() -> Any:
    """Return the registry of Keystone's managers, loaded by its bootstrapper."""
    from keystone.common.provider_api import ProviderAPIs

    return ProviderAPIs


def _create_users(job: Job, bootstrapper: Any) -> None:
    from keystone import exception

    providers = _providers()
    domain_id = bootstrapper.default_domain_id
    projects = {name: _ensure_project(name, domain_id) for name in PROJECTS}
    roles = {role["name"]: role["id"] for role in providers.role_api.list_roles()}
    for user, password in job.passwords.items():
        user_id = _ensure_user(user, password, domain_id)
        for project, role in GRANTS[user]:
            try:
                providers.assignment_api.add_role_to_user_and_project(
                    user_id=user_id,
                    project_id=projects[project],
                    role_id=_ensure_role(role, roles),
                )
            except exception.Conflict:
                continue  # granted by an earlier run
        if user in SYSTEM_GRANTS:
            _ensure_on_system(user_id, roles[SYSTEM_GRANTS[user]])


def _ensure_on_system(user_id: str, role_id: str) -> None:
    from keystone import exception

    assignments = _providers().assignment_api
    try:
        assignments.check_system_grant_for_user(user_id, role_id)
    except exception.RoleAssignmentNotFound:
        assignments.create_system_grant_for_user(user_id, role_id)


def _ensure_role(name: str, known: dict[str, str]) -> str:
    """Return the ID of a role; a new one is added to ``known``."""
    if name not in known:
        role = {"id": uuid.uuid4().hex, "name": name}
        known[name] = str(_providers().role_api.create_role(role["id"], role)["id"])
    return known[name]


def _ensure_project(name: str, domain_id: str) -> str:
    from keystone import exception

    providers = _providers()
    try:
        found = providers.resource_api.get_project_by_name(name, domain_id)
    except exception.ProjectNotFound:
        project = {"id": uuid.uuid4().hex, "name": name, "domain_id": domain_id, "enabled": True}
        found = providers.resource_api.create_project(project["id"], project)
    return str(found["id"])


def _ensure_user(name: str, password: str, domain_id: str) -> str:
    """Return the user's ID; an existing user whose password differs is given this one."""
    from keystone import exception

    users = _providers().identity_api
    try:
        found = users.get_user_by_name(name, domain_id)
    except exception.UserNotFound:
        user = {"name": name, "password": password, "domain_id": domain_id, "enabled": True}
        return str(users.create_user(user)["id"])
    if name == "admin":
        return str(found["id"])  # the bootstrapper has just set this one
    try:
        users.driver.authenticate(found["id"], password)
    except AssertionError:
        users.update_user(found["id"], {"password": password})
    return str(found["id"])


def _create_catalog(job: Job) -> None:
    catalog = _providers().catalog_api
    services = {service["type"]: service["id"] for service in catalog.list_services()}
    present = {
        (endpoint["service_id"], endpoint["interface"]): endpoint
        for endpoint in catalog.list_endpoints()
        if endpoint["region_id"] == job.region
    }
    for wanted in job.endpoints:
        service_id = services.get(wanted.type)
        if service_id is None:
            service_id = uuid.uuid4().hex
            service = {"id": service_id, "type": wanted.type, "name": wanted.name}
            catalog.create_service(service_id, service | {"enabled": True})
        for interface in INTERFACES:
            found = present.get((service_id, interface))
            _ensure_endpoint(found, service_id, interface, wanted.url, job.region)


def _ensure_endpoint(
    present: dict[str, Any] | None, service_id: str, interface: str, url: str, region: str
) -> None:
    catalog = _providers().catalog_api
    if present is None:
        endpoint = {
            "id": uuid.uuid4().hex,
            "service_id": service_id,
            "interface": interface,
            "url": url,
            "region_id": region,
            "enabled": True,
        }
        catalog.create_endpoint(endpoint["id"], endpoint)
    elif present["url"] != url:
        catalog.update_endpoint(present["id"], {**present, "url": url})
