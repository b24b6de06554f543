"""The user of RabbitMQ."""

from __future__ import annotations

import subprocess

from common.errors import ConfigurationError
from launcher.quickstart.machine import program
from launcher.quickstart.memory import Memory

USER = "micronova"
_THING = f"bus-user {USER}"


def check(memory: Memory) -> None:
    """Raise ConfigurationError where RabbitMQ doesn't answer, or has what isn't ours."""
    if memory.machine.rabbitmq:
        return
    if USER in _users() and not memory.has(_THING):
        raise ConfigurationError(
            f"RabbitMQ has a user {USER} that was not made here; it is left alone."
        )


def make(memory: Memory) -> None:
    """Make the user, who may do all in the virtual host `/`."""
    if memory.machine.rabbitmq:
        return
    memory.add(_THING)
    if USER not in _users():
        _control("add_user", USER, given=f"{memory.password('bus')}\n")
    _control("set_permissions", USER, ".*", ".*", ".*")


def remove(memory: Memory) -> None:
    """Remove the user."""
    if not memory.has(_THING):
        return
    if USER in _users():
        _control("delete_user", USER)
    memory.remove(_THING)


def url(memory: Memory) -> str:
    """Return the services' URL."""
    given = memory.machine.rabbitmq
    return given or f"rabbit://{USER}:{memory.password('bus')}@127.0.0.1:5672/"


def _users() -> list[str]:
    listed = _control("--quiet", "list_users", "--no-table-headers")
    return [line.split()[0] for line in listed.splitlines() if line.strip()]


def _control(*words: str, given: str = "") -> str:
    """Run rabbitmqctl; a password is on standard input only."""
    done = subprocess.run(  # noqa: S603
        [program("rabbitmqctl", "rabbitmq-server"), *words],
        input=given,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise ConfigurationError(f"RabbitMQ: {said[0] if said else done.returncode}")
    return done.stdout
