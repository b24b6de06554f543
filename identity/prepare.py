"""Prepare Keystone's folder: the configuration, then a job for its process.

A marker is written last. Without it the folder is from a first start that was interrupted: it is
removed and made again. With it and the same job, nothing is done; with another job (new endpoints,
passwords or Keystone) the job runs again on the existing folder.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from common.process.child import Child, ChildFailed
from identity.errors import KeystoneFailed
from identity.layout import Job
from identity.private_file import private_directory, sync_directory, write_private

Progress = Callable[[str], None]

_MARKER = "complete"
#: without a line of output from the job
_TIMEOUT_SECONDS = 300

_CONFIGURATION = """\
# Written at every start; changes here are lost.
[DEFAULT]
use_stderr = true
public_endpoint = {public_endpoint}
# Logins, refused and accepted; identity.events writes them.
notification_format = cadf
notification_opt_out = identity.authenticate.pending

[oslo_messaging_notifications]
driver = log
# There is no bus: what would load a driver for one is not needed.
transport_url = fake://

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


def prepare(state_dir: Path, job: Job, process: Child, progress: Progress) -> bool:
    """Apply `job` to `<state_dir>/keystone`; return whether anything was changed.

    `process`, Keystone's, must not run; it is started if there is something to change, and then
    serves. `progress` is called with a short description before each step. Raises KeystoneFailed,
    with the step that failed; the process doesn't run then.
    """
    folder = private_directory(state_dir / "keystone")
    private_directory(state_dir / "log")
    marker = folder / _MARKER
    wanted = digest(job)
    done = _read_marker(marker)
    if done is None:
        shutil.rmtree(folder)
        private_directory(folder)
    write_private(folder / "keystone.conf", configuration(folder, job))
    if done == wanted:
        return False
    _carry_out(job, process, progress)
    _sync(folder)
    write_private(marker, wanted + "\n")
    return True


def configuration_environment(folder: Path) -> dict[str, str]:
    """Return the variable by which Keystone finds its configuration."""
    return {"OS_KEYSTONE_CONFIG_DIR": str(folder)}


def configuration(folder: Path, job: Job) -> str:
    """Return the text of keystone.conf for a Keystone that lives in `folder`."""
    identity = next(entry.url for entry in job.endpoints if entry.type == "identity")
    values = {
        "folder": str(folder.resolve()),
        "public_endpoint": identity,
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


def _carry_out(job: Job, process: Child, progress: Progress) -> None:
    """Start the process with the job, and follow it until all is made; else end it."""
    step = "starting"
    try:
        process.start(json.dumps(job.to_dict()) + "\n")
        for message in process.messages(_TIMEOUT_SECONDS):
            if message.get("made"):
                return
            step = message.get("step", step)
            progress(step)
    except BaseException as error:
        process.end()
        if not isinstance(error, ChildFailed):
            raise
        log = str(process.log_path)
        raise KeystoneFailed(f"Keystone failed while {step}; see {log}.", log=log) from error


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
