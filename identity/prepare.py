"""Prepare Keystone's folder: the configuration, then a child process for the rest.

A marker is written last. Without it the folder is from a first start that was interrupted: it is
removed and made again. With it and the same job nothing is to do; with another job (new endpoints,
passwords or Keystone) the child runs again on what is there.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from common.child import environment, python
from identity.bootstrap import STEP
from identity.errors import KeystoneFailed
from identity.layout import Job
from identity.private_file import private_directory, sync_directory, write_private

Progress = Callable[[str], None]

_MARKER = "complete"
_TIMEOUT_SECONDS = 300

_CONFIGURATION = """\
# Written at every start; changes here are lost.
[DEFAULT]
use_stderr = true
public_endpoint = {public_endpoint}

[database]
connection = sqlite:///{folder}/keystone.db?timeout=60
# The same file: readers have an engine of their own, which doesn't wait for writers.
slave_connection = sqlite:///{folder}/keystone.db?timeout=60

[cache]
enabled = true
backend = oslo_cache.dict
expiration_time = 600

[identity]
# What bcrypt uses of a password; with a longer limit Keystone warns at every login.
max_password_length = 72

[token]
provider = fernet

[fernet_tokens]
key_repository = {folder}/fernet-keys

[fernet_receipts]
key_repository = {folder}/fernet-keys

[credential]
key_repository = {folder}/credential-keys
"""


def prepare(state_dir: Path, job: Job, progress: Progress) -> bool:
    """Make `<state_dir>/keystone` hold what `job` says; return whether anything was to do.

    Keystone must not be running. `progress` is called with a few words before each step.
    Raises KeystoneFailed with the child's last line when a step fails.
    """
    folder = private_directory(state_dir / "keystone")
    log = private_directory(state_dir / "log") / "keystone.log"
    marker = folder / _MARKER
    wanted = digest(job)
    done = _read_marker(marker)
    if done is None:
        shutil.rmtree(folder)
        private_directory(folder)
    write_private(folder / "keystone.conf", configuration(folder, job))
    if done == wanted:
        return False
    _run_child(folder, log, job, progress)
    _sync(folder)
    write_private(marker, wanted + "\n")
    return True


def configuration_environment(folder: Path) -> dict[str, str]:
    """Return the variable by which Keystone finds its configuration."""
    return {"OS_KEYSTONE_CONFIG_DIR": str(folder)}


def configuration(folder: Path, job: Job) -> str:
    """Return the text of keystone.conf for a Keystone that lives in `folder`."""
    auth_url = next(entry.url for entry in job.endpoints if entry.type == "identity")
    values = {
        "folder": str(folder.resolve()),
        "public_endpoint": auth_url.rstrip("/").removesuffix("/v3"),
    }
    # oslo.config would take "$" in a value for a reference.
    return _CONFIGURATION.format(**{key: text.replace("$", "$$") for key, text in values.items()})


def digest(job: Job) -> str:
    """Return a digest of the job and the version of Keystone."""
    # The passwords are in secrets.json beside this; the digest reveals nothing more.
    facts = {"keystone": importlib.metadata.version("keystone"), "format": 1, **job.to_dict()}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _read_marker(marker: Path) -> str | None:
    try:
        return marker.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None


def _run_child(folder: Path, log: Path, job: Job, progress: Progress) -> None:
    with (
        open_log(log) as log_fd,
        subprocess.Popen(  # noqa: S603
            python("identity.bootstrap"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log_fd,
            env=environment(configuration_environment(folder)),
            cwd=folder,
            text=True,
            umask=0o077,
        ) as child,
    ):
        try:
            step = _follow(child, job, progress)
            code = child.wait(_TIMEOUT_SECONDS)
        finally:
            child.kill()  # does nothing to one that has ended
            child.wait()  # after Ctrl-C, Popen itself waits for a moment only
    if code != 0:
        raise KeystoneFailed(f"Keystone failed while {step}; see {log}.", log=str(log))


def _follow(child: subprocess.Popen[str], job: Job, progress: Progress) -> str:
    """Hand the job over and report steps until the child closes its output; return the last."""
    assert child.stdin is not None
    assert child.stdout is not None
    with contextlib.suppress(BrokenPipeError):  # it has ended already; its exit code says why
        child.stdin.write(json.dumps(job.to_dict()) + "\n")
        child.stdin.flush()  # and stays open: the child ends when it is closed
    step = "starting"
    for line in child.stdout:
        if line.startswith(STEP):
            step = line.removeprefix(STEP).strip()
            progress(step)
    return step


@contextlib.contextmanager
def open_log(path: Path) -> Iterator[int]:
    """Yield a descriptor that appends to the log file `path`, which only its owner may read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _sync(folder: Path) -> None:
    """Make the child's files durable: it wrote the database without a sync per commit."""
    for directory, _, names in os.walk(folder):
        for name in names:
            descriptor = os.open(os.path.join(directory, name), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_directory(Path(directory))
