"""Configuration: one ConfigOpts per process, made at the composition root and passed down.

Options are declared beside the code that reads them; each such module has ``register(conf)``.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from oslo_config import cfg

from common.errors import ConfigurationError

Register = Callable[[cfg.ConfigOpts], None]


def load(
    register: Iterable[Register],
    *,
    files: Sequence[str] = (),
    args: Sequence[str] = (),
    prog: str = "micronova",
) -> cfg.ConfigOpts:
    """Return a ConfigOpts with the given declarations, read from these files.

    Raises ConfigurationError, one line, where a file is missing or a value is out of range.
    """
    conf = cfg.ConfigOpts()
    for declare in register:
        declare(conf)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            conf(args=list(args), project="micronova", prog=prog, default_config_files=list(files))
    except (cfg.Error, OSError) as error:
        raise ConfigurationError(str(error)) from error
    except SystemExit as error:  # of a value of an option that a command line could have
        raise ConfigurationError(said.getvalue().strip()) from error
    try:
        _require_valid(conf)
    except ConfigurationError as error:
        # The user who starts the process may not have chosen the file.
        origin = f" (configuration: {', '.join(files)})" if files else ""
        raise ConfigurationError(f"{error.message}{origin}") from error
    return conf


def _require_valid(conf: cfg.ConfigOpts) -> None:
    """Raise ConfigurationError for the first value that its option doesn't take.

    oslo.config reads a value when it is asked for, which may be long after the start.
    """
    for name in conf:
        found = _valid(conf, "DEFAULT", name)
        for option in found if isinstance(found, cfg.ConfigOpts.GroupAttr) else ():
            _valid(found, name, option)


def _valid(options: Mapping[str, Any], group: str, name: str) -> Any:
    try:
        return options[name]
    except (cfg.Error, ValueError) as error:
        reason = error.__context__ or error
        raise ConfigurationError(f"[{group}] {name}: {reason}") from error
