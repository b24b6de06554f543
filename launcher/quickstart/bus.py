"""RabbitMQ: a user for each service, with just the rights that it needs, and their queues."""

from __future__ import annotations

import socket
import subprocess

from common.errors import ConfigurationError
from common.rpc import permissions, senders
from launcher.quickstart import queues
from launcher.quickstart.machine import program
from launcher.quickstart.memory import Memory
from launcher.quickstart.queues import Found

_KIND = "bus-user"
_OTHERS = "bus-others"
"""What others had there before, which is left alone."""
_LOOKED = f"{_OTHERS} looked for"
#: in the memory of whom services may have run
_CONFIGURED = "file conductor.conf"


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
    """Make the users in the virtual host `/`; note what others have there."""
    _note_others(memory)
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


def _note_others(memory: Memory) -> None:
    if memory.has(_LOOKED):
        return
    # Where services ran already, such as those of a release that noted nothing, names are theirs.
    if not (memory.of(_KIND) or memory.has(_CONFIGURED)):
        for thing in sorted(_found(memory).things()):
            memory.add(f"{_OTHERS} {thing}")
    memory.add(_LOOKED)


def _found(memory: Memory) -> Found:
    """Return what has names of ours, and isn't known to be another application's."""
    users = [_user(memory, role) for role in permissions.ROLES]
    given = memory.machine.rabbitmq
    servers = {worker(memory), socket.gethostname()}
    found = queues.asked_for(given, servers) if given else queues.listed(_control, users)
    return found.without(memory.of(_OTHERS))


def remove(memory: Memory) -> list[str]:
    """Remove users, queues and exchanges; return what has names of ours and is in use."""
    made = memory.of(_KIND)
    known = _users() if made else []
    there = [user for user in made if user in known]
    given = memory.machine.rabbitmq
    left: list[str] = []
    if there or (given and memory.has(_CONFIGURED)):
        _empty(memory, [given] if given else _urls(memory, there))
        left = sorted(_found(memory).things())
    for user in made:
        if user in there:
            _control("delete_user", user)
        memory.remove(f"{_KIND} {user}")
    for one in memory.of(_OTHERS):
        memory.remove(f"{_OTHERS} {one}")
    return left


def _empty(memory: Memory, urls: list[str]) -> None:
    """Delete queues and exchanges: each user those that it may have made."""
    found = queues.unread(lambda: _found(memory))
    for url in urls:
        queues.delete(url, found.queues, ())
    for url in urls:
        queues.delete(url, (), found.exchanges)


def _urls(memory: Memory, users: list[str]) -> list[str]:
    """Return the URLs of users, at the port where this machine's broker listens."""
    port = queues.port(_control)
    return [f"rabbit://{user}:{memory.password(user)}@127.0.0.1:{port}/" for user in users]


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
