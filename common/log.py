"""Logging: oslo.log, one format for every service, loggers named ``micronova.*``.

What clients send gets into messages, and into the texts of exceptions. So each record is one line
of printable characters; the lines of its traceback, if any, follow with an indent that no record
begins with. ``escape_output`` does so for every handler of a process, made by any library.
"""

from __future__ import annotations

import copy
import logging
import traceback
from collections.abc import Iterator

from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_log import formatters
from oslo_log import log as oslo_log

#: request IDs, project and resource in every line
CONTEXT_FORMAT = (
    "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s "
    "[%(global_request_id)s %(request_id)s project %(project_id)s "
    "%(resource_type)s %(resource_id)s] %(message)s"
)
DEFAULT_FORMAT = (
    "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s "
    "[- - project - resource -] %(message)s"
)

#: libraries that log secrets or noise below these levels
LEVELS = [
    "urllib3=WARNING",
    "requests=WARNING",
    "keystoneauth=WARNING",
    "keystonemiddleware=WARNING",
    "proxmoxer=WARNING",
    "oslo.messaging=WARNING",
    "oslo_messaging=WARNING",
    "amqp=WARNING",
    "stevedore=WARNING",
    "sqlalchemy=WARNING",
    "kombu=WARNING",
    "pycdlib=WARNING",
]


def register(conf: cfg.ConfigOpts) -> None:
    """Declare oslo.log's options with our formats as defaults; idempotent."""
    oslo_log.register_options(conf)
    oslo_log.set_defaults(logging_context_format_string=CONTEXT_FORMAT, default_log_levels=LEVELS)
    conf.set_default("logging_default_format_string", DEFAULT_FORMAT)


def setup(conf: cfg.ConfigOpts, service: str) -> None:
    """Start logging of this process as ``micronova-<service>``."""
    oslo_log.setup(conf, f"micronova-{service}")
    escape_output()


def logger(module: str) -> logging.LoggerAdapter[logging.Logger]:
    """Return the logger of a module: ``logger(__name__)``."""
    adapter: logging.LoggerAdapter[logging.Logger] = oslo_log.getLogger(f"micronova.{module}")
    return adapter


def escaped(text: str) -> str:
    """Return a text with all that isn't printable as escape sequences: one line, and no commands
    to a terminal.

    >>> escaped("a\\nb")
    'a\\\\nb'
    """
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text
    )


def escape_output() -> None:
    """Have all handlers that this process has now write escaped records; may be called again.

    JSON and Fluentd's messages escape by themselves.
    """
    known = [logging.getLogger(), *logging.Logger.manager.loggerDict.values()]
    handlers = [one for each in known if isinstance(each, logging.Logger) for one in each.handlers]
    if logging.lastResort is not None:
        handlers.append(logging.lastResort)
    for handler in handlers:
        inner = handler.formatter or logging.Formatter()
        if not isinstance(inner, _ESCAPE_THEMSELVES):
            handler.setFormatter(Escaping(inner))


class Escaping(logging.Formatter):
    """Formats a record as another formatter does, escaped; the traceback below it, indented."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner
        self._has_our_formats = _has_our_formats(inner)

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, and those of the traceback and of the stack."""
        if self._has_our_formats and _is_simple(record):
            try:
                return escaped(self._line(record))
            except (KeyError, TypeError, ValueError):
                return self._whole(record)  # what oslo.log makes of a record that is wrong
        return self._whole(record)

    def _line(self, record: logging.LogRecord) -> str:
        """Return the line of a simple record in our formats, for a third of what oslo.log takes.

        That asks the context twice, and prepares what these formats don't name.
        """
        fields = dict(record.__dict__)
        context = fields.get("context", oslo_context.get_current())
        if context is not None:
            fields |= context.get_logging_values()
        fields["message"] = record.getMessage()
        fields["asctime"] = self._inner.formatTime(record, self._inner.datefmt)
        if not fields.get("request_id"):
            return DEFAULT_FORMAT % fields
        fields.setdefault("global_request_id", "")
        return CONTEXT_FORMAT % fields

    def _whole(self, record: logging.LogRecord) -> str:
        """Return the lines of any record, in any format."""
        first = copy.copy(record)
        # Colours would be escaped as well; another handler may have formatted the exception.
        first.color, first.exc_info, first.exc_text, first.stack_info = "", None, None, None
        lines = [self._inner.format(first), *_below(record)]
        return f"\n{_INDENT}".join(map(escaped, lines))


def _has_our_formats(inner: logging.Formatter) -> bool:
    """Return whether a formatter is oslo.log's, with the formats that no operator has changed."""
    conf = getattr(inner, "conf", None)
    return type(inner) is formatters.ContextFormatter and (
        getattr(conf, "logging_context_format_string", None),
        getattr(conf, "logging_default_format_string", None),
    ) == (CONTEXT_FORMAT, DEFAULT_FORMAT)


def _is_simple(record: logging.LogRecord) -> bool:
    """Return whether oslo.log adds nothing to a record's format, nor a traceback below it.

    It adds the place in the code to debugging, and to warnings the error that is being handled.
    """
    context = record.__dict__.get("context")
    return (
        logging.DEBUG < record.levelno < logging.WARNING
        and not (record.exc_info or record.exc_text or record.stack_info)
        and (context is None or isinstance(context, oslo_context.RequestContext))
    )


_INDENT = "    "
_ESCAPE_THEMSELVES = (Escaping, formatters.JSONFormatter, formatters.FluentFormatter)
#: what a frame's lines begin with; in a group of exceptions they are indented by bars
_FRAME, _MARGIN = 'File "', " |"


def _below(record: logging.LogRecord) -> Iterator[str]:
    """Yield the lines of a record's traceback and stack.

    Each part of a traceback but a frame is one line: the text of an exception may have breaks.
    """
    if record.exc_info and record.exc_info[1] is not None:
        for part in traceback.TracebackException(*record.exc_info).format():
            is_frame = part.lstrip(_MARGIN).startswith(_FRAME)
            text = part.strip("\n")
            yield from text.split("\n") if is_frame else [text]
    elif record.exc_text:
        yield record.exc_text
    if record.stack_info:
        yield from record.stack_info.split("\n")
