"""The names of the firewall's macros, each with the rules of a well-known service."""

from __future__ import annotations

_NAMES = """
Amanda Auth BGP BitTorrent BitTorrent32 CVS Ceph Citrix DAAP DCC DHCPfwd DHCPv6 DNS Distcc
FTP Finger GNUnet GRE Git HKP HTTP HTTPS ICPV2 ICQ IMAP IMAPS IPIP IPsec IPsecah IPsecnat
IRC Jetdirect L2TP LDAP LDAPS MDNS MSNP MSSQL Mail Munin MySQL NNTP NNTPS NTP
NeighborDiscovery OSPF OpenVPN PCA PMG POP3 POP3S PPtP Ping PostgreSQL Printer RDP RIP RNDC
Razor Rdate Rsync SANE SMB SMBswat SMTP SMTPS SNMP SPAMD SPICEproxy SSH SVN SixXS Squid
Submission Syslog TFTP Telnet Telnets Time Trcrt VNC VNCL Web Webcache Webmin Whois
"""
MACROS = frozenset(_NAMES.split())
