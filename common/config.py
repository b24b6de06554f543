"""Configuration: one ConfigOpts per process, made at the composition root and passed down.

Options are declared beside the code that reads them; each such module has ``register(conf)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

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
    try:
        conf(args=list(args), project="micronova", prog=prog, default_config_files=list(files))
    except (cfg.Error, OSError) as error:
        raise ConfigurationError(str(error)) from error
    return conf
