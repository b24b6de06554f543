"""What may go wrong with the embedded Keystone, each with one sentence for the operator."""

from __future__ import annotations

from common.errors import ConfigurationError, Forbidden, Unavailable


class PortBusy(ConfigurationError):
    """Another process listens where Keystone should; details: host, port."""

    code = "micronova.identity_port_busy"
    sentence = "The port for Keystone is in use."


class AddressUnusable(ConfigurationError):
    """Keystone can't listen at the configured address; details: host, port."""

    code = "micronova.identity_address_unusable"
    sentence = "The address for Keystone can't be used."


class KeystoneFailed(Unavailable):
    """Keystone couldn't be prepared or didn't come up; details: log (a path)."""

    code = "micronova.identity_failed"
    sentence = "The embedded Keystone failed."


class RegionTaken(ConfigurationError):
    """A catalog has the region, for another cloud; details: region, url."""

    code = "micronova.identity_region_taken"
    sentence = "The region belongs to another cloud."


class TooManyLogins(Forbidden):
    """Too many logins from one address have failed; details: seconds."""

    code = "micronova.identity_too_many_logins"
    sentence = "Too many logins from this address have failed: try again later."
