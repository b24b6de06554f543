"""Roles and databases of PostgreSQL, made and removed by psql."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from common.errors import ConfigurationError
from launcher.quickstart.machine import Machine, program
from launcher.quickstart.memory import Memory

READER, WRITER, PLACEMENT = "micronova_api", "micronova_conductor", "micronova_placement"
GRANTS: Mapping[str, str] = {
    "reader-role": READER,
    "writer-role": WRITER,
    "placement-role": PLACEMENT,
}
"""{option of ``launcher.databases.ROLES``: the role of a service}"""
DATABASES: Mapping[str, str] = {"micronova": "micronova", "placement": "placement"}
"""{database: its owner}, by whom tables are changed"""
ROLES = (*DATABASES.values(), *GRANTS.values())

_ROLE, _DATABASE = "role", "database"


def check(memory: Memory) -> None:
    """Raise ConfigurationError where PostgreSQL doesn't answer, or has what isn't ours."""
    found = _run(
        memory.machine,
        "SELECT 'role ' || rolname FROM pg_roles UNION ALL "
        "SELECT 'database ' || datname FROM pg_database;",
    ).splitlines()
    ours = {f"{_ROLE} {one}" for one in ROLES} | {f"{_DATABASE} {one}" for one in DATABASES}
    for thing in sorted(ours & set(found)):
        if not memory.has(thing):
            raise ConfigurationError(
                f"PostgreSQL has a {thing} that was not made here; it is left alone."
            )


def make(memory: Memory) -> None:
    """Make roles and databases, and have each role its password."""
    for role in ROLES:
        memory.add(f"{_ROLE} {role}")
        _run(
            memory.machine,
            f"SELECT 'CREATE ROLE {role} LOGIN' WHERE NOT EXISTS "
            f"(SELECT FROM pg_roles WHERE rolname = '{role}') \\gexec\n"
            f"ALTER ROLE {role} LOGIN PASSWORD '{memory.password(role)}';",
        )
    for name, owner in DATABASES.items():
        memory.add(f"{_DATABASE} {name}")
        _run(
            memory.machine,
            f"SELECT 'CREATE DATABASE {name} OWNER {owner} ENCODING ''UTF8'' TEMPLATE template0' "
            f"WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '{name}') \\gexec",
        )


def remove(memory: Memory) -> None:
    """Remove databases and roles."""
    for name in memory.of(_DATABASE):
        _run(memory.machine, f"DROP DATABASE IF EXISTS {name} WITH (FORCE);")
        memory.remove(f"{_DATABASE} {name}")
    for role in memory.of(_ROLE):
        _run(memory.machine, f"DROP ROLE IF EXISTS {role};")
        memory.remove(f"{_ROLE} {role}")


def servers(memory: Memory) -> int:
    """Return how many servers the cloud's database has; none where there is no database."""
    if not memory.has(f"{_DATABASE} micronova"):
        return 0
    # It may have been noted and not made, or somebody has removed it.
    made = "SELECT count(*) FROM pg_database WHERE datname = 'micronova';"
    if _run(memory.machine, made).strip() == "0":
        return 0
    there = "SELECT to_regclass('servers') IS NOT NULL;"
    if _run(memory.machine, there, "micronova").strip() != "t":
        return 0
    count = "SELECT count(*) FROM servers WHERE deleted_at IS NULL;"
    return int(_run(memory.machine, count, "micronova"))


def url(memory: Memory, role: str, database: str) -> str:
    """Return how a service connects."""
    found = urlsplit(memory.machine.postgres)
    host, port = found.hostname or "127.0.0.1", found.port or 5432
    where = f"[{host}]" if ":" in host else host
    return f"postgresql+psycopg://{role}:{memory.password(role)}@{where}:{port}/{database}"


def _run(machine: Machine, statements: str, database: str = "postgres") -> str:
    """Run statements as the superuser; passwords are on standard input only."""
    words = [program("psql", "postgresql"), "--no-psqlrc", "--quiet", "--tuples-only"]
    words += ["--no-align", "--set=ON_ERROR_STOP=1", f"--dbname={database}"]
    environment = {name: v for name, v in os.environ.items() if not name.startswith("PG")}
    if machine.postgres:
        found = urlsplit(machine.postgres)
        environment |= {
            "PGHOST": found.hostname or "127.0.0.1",
            "PGPORT": str(found.port or 5432),
            "PGUSER": unquote(found.username or "postgres"),
            "PGPASSWORD": unquote(found.password or ""),
        }
    else:
        words = [program("runuser", "util-linux"), "-u", "postgres", "--", *words]
    done = subprocess.run(  # noqa: S603
        words,
        input=statements,
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = (done.stderr.strip() or f"psql ended with {done.returncode}").splitlines()[0]
        raise ConfigurationError(f"PostgreSQL: {said}")
    return done.stdout
