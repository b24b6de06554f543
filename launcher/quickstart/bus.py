"""The users of RabbitMQ, one for each service, with just the rights that it needs."""

from __future__ import annotations

import socket
import subprocess

from common.errors import ConfigurationError
from common.rpc import permissions, senders
from launcher.quickstart.machine import program
from launcher.quickstart.memory import Memory

_KIND = "bus-user"


def worker(memory: Memory) -> str:
    """Return the name of the compute worker: this machine's when it was first made."""
    made = (senders.sender_of(user).worker for user in memory.of(_KIND))
    return next((name for name in made if name), None) or socket.gethostname()


def _user(memory: Memory, role: str) -> str:
    return senders.user_of(role, worker(memory) if role == senders.COMPUTE else "")


def check(memory: Memory) -> None:
    """Raise ConfigurationError where RabbitMQ doesn't answer, or has what isn't ours."""
    if memory.machine.rabbitmq:
        return
    there = _users()
    for user in (_user(memory, role) for role in permissions.ROLES):
        if user in there and not memory.has(f"{_KIND} {user}"):
            raise ConfigurationError(
                f"RabbitMQ has a user {user} that was not made here; it is left alone."
            )


def make(memory: Memory) -> None:
    """Make the users in the virtual host `/`."""
    if memory.machine.rabbitmq:
        return
    there = _users()
    for role in permissions.ROLES:
        user = _user(memory, role)
        memory.add(f"{_KIND} {user}")
        if user not in there:
            _control("add_user", user, given=f"{memory.password(user)}\n")
        name = worker(memory) if role == senders.COMPUTE else ""
        for words in permissions.commands(user, permissions.of(role, name)):
            _control(*words)


def remove(memory: Memory) -> None:
    """Remove the users."""
    made = memory.of(_KIND)
    there = _users() if made else []
    for user in made:
        if user in there:
            _control("delete_user", user)
        memory.remove(f"{_KIND} {user}")


def url(memory: Memory, role: str) -> str:
    """Return the URL of a service."""
    given, user = memory.machine.rabbitmq, _user(memory, role)
    return given or f"rabbit://{user}:{memory.password(user)}@127.0.0.1:5672/"


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
