"""The ``micronova`` command: the client, and the composition root of the services."""
