"""What points an unmodified Horizon at a cloud: docs/existing-dashboards.md has the same lines."""

import os

_FOLDER = os.environ["MICRONOVA_TEST_HORIZON_FOLDER"]

OPENSTACK_KEYSTONE_URL = os.environ["OS_AUTH_URL"]
OPENSTACK_KEYSTONE_DEFAULT_DOMAIN = "Default"
OPENSTACK_KEYSTONE_DEFAULT_ROLE = "member"
OPENSTACK_HYPERVISOR_FEATURES = {"can_set_mount_point": False}
OPENSTACK_NEUTRON_NETWORK = {"enable_router": False, "enable_quotas": True}
OPENSTACK_CINDER_FEATURES = {"enable_backup": True}
CONSOLE_TYPE = "AUTO"

ALLOWED_HOSTS = ["127.0.0.1"]
SECRET_KEY = "only for this test"
COMPRESS_OFFLINE = True
STATIC_ROOT = os.path.join(_FOLDER, "static")
SESSION_ENGINE = "django.contrib.sessions.backends.file"
SESSION_FILE_PATH = os.path.join(_FOLDER, "sessions")
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
}
