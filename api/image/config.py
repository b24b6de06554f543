"""Options of uploads."""

from __future__ import annotations

from oslo_config import cfg

from common.resources import quotas

GROUP = "images"

OPTIONS = [
    cfg.StrOpt(
        "fetch_url",
        default="",
        help="URL of the image API of this very host up to, not including, /v2, under which "
        "agents reach it without a proxy or load balancer that may choose another host, e.g. "
        "http://10.0.0.5:8774/image. Agents fetch uploaded data there and pass them to the "
        "clusters. Empty: nothing can be uploaded.",
    ),
    cfg.StrOpt(
        "spool_dir",
        default="/var/lib/micronova/spool",
        help="Directory of this host where uploaded data are kept until every cluster has them. "
        "All processes of the image API on the host share it, and no other host.",
    ),
    cfg.IntOpt(
        "max_upload_gib",
        default=100,
        min=1,
        help="The most that one upload may have, GiB; more is refused (413). A spool without "
        "room refuses less.",
    ),
    cfg.IntOpt(
        "spool_reserve_mib",
        default=-1,
        min=-1,
        help="MiB that uploads leave free on the disk of spool_dir; more is refused (413). -1: "
        "the larger of 1 GiB and 5 % of the disk.",
    ),
    cfg.BoolOpt(
        "keep_data",
        default=False,
        help="Keep in the spool what was uploaded, so that it can be downloaded from this host "
        "(openstack image save) until the image is deleted.",
    ),
    cfg.ListOpt(
        "download_from",
        default=[],
        help="Where users may have images downloaded from (web-download): schemes and host "
        "names, which may be patterns, and ports where they are not 80 and 443, e.g. "
        "https://cloud.debian.org, https://*.example.org:8443. Redirects must lead to one of "
        "them too. Empty: nowhere.",
    ),
    cfg.ListOpt(
        "download_networks",
        default=[],
        help="Networks whose addresses such hosts may have though they are not addresses of the "
        "Internet, e.g. 10.20.0.0/16.",
    ),
    cfg.IntOpt(
        "download_seconds",
        default=3600,
        min=1,
        help="Seconds after which a download is given up.",
    ),
    cfg.IntOpt(
        "upload_wait_seconds",
        default=45,
        min=0,
        help="Seconds that the answer to an upload waits for the first cluster to have the "
        "image. Until then the image is 'saving' and no servers can be made of it.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Declare these options as `[images]` on `conf`, and those of quotas; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)
    quotas.register(conf)
