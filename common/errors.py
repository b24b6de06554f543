"""The error classes of all services.

Every class carries a stable dotted code ("once set, it is set") and a sentence for people; none
knows HTTP. Each service maps the classes to its own protocol in one table. The same classes cross
RPC: an instance is rebuilt from its message and its details, so details must be JSON values.
"""

from __future__ import annotations

from typing import Any, ClassVar


class MicronovaError(Exception):
    """Root of the tree. ``details`` are JSON values for programs; the message is for people."""

    code: ClassVar[str] = "micronova.error"
    sentence: ClassVar[str] = "An unexpected error occurred."

    def __init__(self, message: str | None = None, **details: Any) -> None:
        self.details = details
        # oslo.messaging carries args and kwargs of a failure over the wire.
        self.kwargs = details
        super().__init__(message or self.sentence)

    @property
    def message(self) -> str:
        """Return the sentence for people."""
        return str(self.args[0])


class Invalid(MicronovaError):
    """The request can't be understood or breaks a rule of the API."""

    code = "micronova.invalid"
    sentence = "The request is invalid."


class Unauthorized(MicronovaError):
    """The request is not authenticated."""

    code = "micronova.unauthorized"
    sentence = "Authentication is required."


class Forbidden(MicronovaError):
    """The policy does not allow the request."""

    code = "micronova.forbidden"
    sentence = "Policy doesn't allow this to be performed."


class QuotaExceeded(Forbidden):
    """The project has used up what it may have; details: resource, limit, used, requested."""

    code = "micronova.quota_exceeded"
    sentence = "Quota exceeded."


class NotFound(MicronovaError):
    """The resource doesn't exist, or not for this project."""

    code = "micronova.not_found"
    sentence = "The resource could not be found."


class ServerNotFound(NotFound):
    """No such server in this project."""

    code = "micronova.server_not_found"
    sentence = "Server could not be found."


class FlavorNotFound(NotFound):
    """No such flavor."""

    code = "micronova.flavor_not_found"
    sentence = "Flavor could not be found."


class ImageNotFound(NotFound):
    """No such image."""

    code = "micronova.image_not_found"
    sentence = "Image could not be found."


class BackupNotFound(NotFound):
    """No such backup of a volume."""

    code = "micronova.backup_not_found"
    sentence = "Backup could not be found."


class SnapshotNotFound(NotFound):
    """No such snapshot of a volume, or nothing of that name belongs to it."""

    code = "micronova.snapshot_not_found"
    sentence = "Snapshot could not be found."


class VolumeNotFound(NotFound):
    """No such volume, or nothing of that name belongs to it."""

    code = "micronova.volume_not_found"
    sentence = "Volume could not be found."


class NetworkNotFound(NotFound):
    """No such network."""

    code = "micronova.network_not_found"
    sentence = "Network could not be found."


class SubnetNotFound(NotFound):
    """No such subnet."""

    code = "micronova.subnet_not_found"
    sentence = "Subnet could not be found."


class PortNotFound(NotFound):
    """No such port of this project."""

    code = "micronova.port_not_found"
    sentence = "Port could not be found."


class KeyPairNotFound(NotFound):
    """No such key pair of this user."""

    code = "micronova.keypair_not_found"
    sentence = "Keypair could not be found."


class HostNotFound(NotFound):
    """No such compute host or service."""

    code = "micronova.host_not_found"
    sentence = "Host could not be found."


class Conflict(MicronovaError):
    """The current state does not allow the request."""

    code = "micronova.conflict"
    sentence = "The request conflicts with the current state."


class ServerStateConflict(Conflict):
    """A server's state forbids an action; details: attribute, state, action."""

    code = "micronova.server_state_conflict"
    sentence = "Cannot perform the action while the server is in its current state."


class ServerLocked(Conflict):
    """The server is locked, and who asks is no administrator; details: server_uuid."""

    code = "micronova.server_locked"
    sentence = "The server is locked."


class StaleTransition(Conflict):
    """A compare-and-set failed: another writer has moved the server."""

    code = "micronova.stale_transition"
    sentence = "The server was moved by another operation."


class GenerationConflict(Conflict):
    """Placement: the generation named is not the current one."""

    code = "micronova.generation_conflict"
    sentence = "Resource provider or consumer generation conflict."


class Gone(MicronovaError):
    """There was such an API once."""

    code = "micronova.gone"
    sentence = "This resource is no longer available.  No forwarding address is given."


class TooLarge(MicronovaError):
    """The request is bigger than allowed."""

    code = "micronova.too_large"
    sentence = "The request is too large."


class NoValidHost(MicronovaError):
    """No host can take the server; details say how many each filter refused."""

    code = "micronova.no_valid_host"
    sentence = "No valid host was found."


class PreconditionFailed(MicronovaError):
    """The record has changed since who asks has read it."""

    code = "micronova.precondition_failed"
    sentence = "The record has changed."


class Unavailable(MicronovaError):
    """A service that is needed doesn't answer; asking again later may help."""

    code = "micronova.unavailable"
    sentence = "The service is temporarily unavailable."


class NotSupported(MicronovaError):
    """The installation can't do this."""

    code = "micronova.not_supported"
    sentence = "The request is not supported."


class Unimplemented(MicronovaError):
    """Nothing here can ever do this."""

    code = "micronova.unimplemented"
    sentence = "The requested functionality is not supported."


class ConfigurationError(MicronovaError):
    """The installation is configured wrongly: one line for the operator."""

    code = "micronova.configuration"
    sentence = "The configuration is wrong."


class OperationFailed(MicronovaError):
    """A step of an operation failed; details: category, host, upid, log_tail."""

    code = "micronova.operation_failed"
    sentence = "The operation failed."
