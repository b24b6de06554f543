"""Connections to read on, whose failures are errors of `common.errors`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy import exc

from common.databases import mistakes
from common.errors import Invalid, Unavailable
from common.log import logger
from db import limits, replicas

LOG = logger(__name__)


@contextlib.contextmanager
def reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a connection of the engine.

    Raises Unavailable when the database is down, or took too long; Invalid for a value that it
    doesn't take. A wrong statement's error passes.
    """
    try:
        with replicas.connect(engine) as connection:
            yield connection
    except exc.DataError as error:
        raise Invalid("A filter of the request is not understood.") from error
    except exc.OperationalError as error:
        if mistakes.is_mistake(error):
            raise
        LOG.warning("The database failed: %s", error.orig)
        if limits.exceeded(error):
            raise Unavailable("The database took too long to answer; ask for less.") from error
        raise Unavailable("The database is not available.") from error
    except exc.TimeoutError as error:
        raise Unavailable("The database is not available.") from error
