"""gunicorn for APIs: gunicorn --config gunicorn.conf.py micronova.wsgi:public

The address, the number of workers and whatever else differs between machines are options of the
command line, which win over this file.
"""

from micronova.serving import end, preload

bind = "127.0.0.1:8774"
workers = 2
# Threads are busy with whole requests only; slow clients and their connections have limits. Each
# worker holds worker_connections at the most, and half of them of one address.
worker_class = "micronova.serving.Worker"
threads = 16
worker_connections = 1000
# The master makes what the workers share; new code needs a restart, a new configuration no more
# than a reload.
on_starting = preload
on_reload = preload
on_exit = end
# Longer than the proxy in front holds its connections, so that it never meets a closed one.
keepalive = 75
timeout = 60
graceful_timeout = 30
errorlog = "-"
loglevel = "warning"
# The request log is the services' own, with request ID, project and server.
accesslog = None
# X-Forwarded-… counts from [web] trusted_proxies of micronova.conf alone.
forwarded_allow_ips = ""
control_socket_disable = True
