"""HTTP to other services: always direct, with the services' own login."""
