"""Prepares a cluster of Proxmox VE: what micronova needs there, compared with what it has.

``wanted`` is what is asked for, ``seen`` what a cluster has, ``plan`` the calls between them
(pure), ``root`` carries them out with the ticket of an administrator, which is in memory only.
``lines`` has the same as commands, for a root shell on a node. ``files`` are what the services
need then.
"""
