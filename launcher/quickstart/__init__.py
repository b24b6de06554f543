"""A cloud on one machine, on PostgreSQL and RabbitMQ: configured, started, looked at, removed.

``machine`` is where things are, ``memory`` what was made, with its secrets; ``databases``,
``bus``, ``certificates`` and ``configuration`` make one kind of thing each, again without harm;
``processes`` starts the services by systemd, by supervisord, or names the commands; ``steps`` is
their order.
"""
