"""Generates docs/api.md from the tables that the API runs on.

`python -m api.compute.document` prints it; a test compares docs/api.md with the output.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from api.compute import policies
from api.compute.microversions import HISTORY, VERSIONS
from api.compute.routes import ROUTES, VERSION
from web.guard import Handler, Operation, operation_of

_OLDEST, _NEWEST = VERSIONS.text(VERSIONS.oldest), VERSIONS.text(VERSIONS.newest)

INTRODUCTION = f"""\
# The compute API

micronova answers Nova's API at `/compute/v2.1`, microversions {_OLDEST} to {_NEWEST}, for
unmodified OpenStack clients. It serves the routes listed here; every other route of Nova
answers 404. Every route is there with the project as well
(`/v2.1/{{project_id}}/servers`), and its links then name it too.

Errors have Nova's form: `{{"badRequest": {{"code": 400, "message": "…"}}}}`. Every answer has
its request ID in `X-OpenStack-Request-ID` and `X-Compute-Request-ID`. The outcome of a request, or
of a server, is explained under its ID: see `GET /explanations/{{subject}}` below.

This file is generated: `python -m api.compute.document docs/api.md`.
"""

DIFFERENCES = """\
## Where it differs from Nova

What isn't supported is refused with 400 and a message, never ignored.

- **Block devices of a create** are images on the local root disk; existing volumes; new volumes,
  from an image, from a snapshot or blank; and blank local disks (ephemeral, swap), which are made
  without file system or swap signature. If the volumes exceed the quota the create is refused
  (403), where Nova lets the build fail. If a build fails, the volumes that were made for it are
  removed and the others are available again. In the config drive the `tag` of a local root disk
  belongs to the SCSI disk at `0:0:0:0`, that of a volume to the disk with its serial number.
- **A server that boots from a volume** is rebuilt with another image from 2.93 on, with its own
  image at any time; a root volume with snapshots is refused (400) if they depend on its disk.
  After a failure the volume has its old content. An image of the server is refused (400) while its
  volumes' storage can't take snapshots; a server made from such an image shows no image.
- **A server with a volume on a node's own storage** can't leave that node: a migration is refused
  (400), as is the attachment of a volume that the server's node doesn't reach. Volumes can't be
  swapped.
- **A shelved server's VM is parked**, so a volume is attached to it at once, not when it is
  unshelved: the agent of its host must answer. If the server was suspended before, volumes can't
  be attached or detached until it is unshelved (409). A detached volume is not deleted with the
  server, even with `delete_on_termination`.
- **`device`** of an attachment is ignored, as by Nova's libvirt driver: the answer has the actual
  device name.
- **`disk_bus`** of a block device is `scsi`, `virtio`, `sata` or `ide`, and counts for a root disk
  that is no volume. Volumes and local disks beside it are on SCSI (virtio-scsi): `scsi` and
  `virtio` are taken for them, others refused (400), as is any `device_type` but `disk`.
- **Interfaces are asked for by network**, with a `fixed_ip` if need be, or by `port`: a port that
  the user made is not deleted with the server, and has the same address afterwards.
- **Refused in a create:** `trusted_image_certificates`. `OS-DCF:diskConfig` is kept and shown; it
  changes nothing in the guest.
- **Files of a create** (`personality`, before 2.57) are on the config drive, and the guest writes
  them. They are no part of the server's record.
- **Every server has a config drive.** `config_drive` shows what the create asked.
- **Where fewer hosts than `min_count` are found**, none of the servers is built. Where more but
  not all find one, those are built; Nova builds none then.
- **The one security group is `default`**; another one is refused as unknown.
- **A 503 because of a time-out** is final: the request was carried out already, which shows under
  its ID, or never will be.
- **Actions** that are not listed here are "There is no such action".
- **`os-resetState`** sets `active` and `error`, as Nova's: no other state can be set. It never
  breaks off what can't be undone. A build or a change of power is superseded, as by a delete, and
  what it made remains the server's. A delete continues, with its task_state. While any other
  operation is open the answer is 409. An ERROR that was set this way lasts until it is changed by
  another action or reset.
- **Quotas of users** are refused (400): only projects have quotas. Limits of networks
  (`security_group_rules` and the like, before 2.36) are kept and shown, and limit nothing; so are
  those of quota classes other than `default`.
- **`block_migration`** before 2.34 is refused in the call (400), as by Nova's libvirt driver: true
  on shared storage, false on a node's own. From 2.34 on the operation fails instead. What counts
  is the storage of the host's VMs, and that of the server's volumes.
- **`/extensions`** is Nova's list, whole, whatever this API supports, followed by what it has
  beyond Nova's, with the prefix `micronova-`: `micronova-metrics` are the measurements.
- **`evacuate`** is for VMs under the high availability of Proxmox VE: its manager fences the node,
  chooses the host and starts the VM again as it was, with its disk; so a named host is refused
  (400), and nothing is stopped from 2.95 on. Others are refused (400), with what the operator can
  do instead: on Proxmox VE nothing can be done about a VM whose node is gone. Nova's own refusals
  come first. A host whose agent answers from another node is in use only while its node is online.
- **`forceDelete`** is a delete: nothing is kept of a server that is deleted. `trigger_crash_dump`
  is refused, as by Nova's drivers that have none; `injectNetworkInfo` does nothing.
- **External events** are logged: networks and volumes are the cloud's own, and power is watched.
- **A hypervisor is a compute host** and has its name: `hypervisor_hostname` and `host` agree. Its
  numbers (before 2.88) count what servers were given, not what they use at the moment.
- **`ZONE:HOST` must agree:** a host that isn't in the zone is refused, where Nova drops the zone.
- **A forced host must pass every filter**, however it is named, so that a refusal has its reason;
  Nova skips its filters for `ZONE:HOST`.
- **A host's zone** is its aggregate's, else the host's own (`[compute]
  availability_zone`), where Nova has one default for all hosts.
- **Flavors require aggregates** by extra specs `aggregate_instance_extra_specs:…` only; those
  without a scope don't apply to aggregates.
- **`POST /os-aggregates/{id}/images`** makes the template that builds clone, on hosts that are up.
  Where a host can't have one (it doesn't clone, or doesn't reach the image) it answers 400 and
  begins nothing, where Nova answers 202.
- **Strict server groups** are held when the host is committed, for forced hosts too.
- **A stopped server that somebody starts** behind the cloud becomes ACTIVE, where Nova stops it
  again; other differences of power are treated as Nova does.
- **Quotas are of projects.** `user_id` is refused when setting them and ignored when reading.
- **`/v2`** is `/v2.1` at its oldest microversion. It checks bodies as strictly, where Nova drops
  what it doesn't know.
- **Regular expressions** in filters mean the same on every database: RE2's, without look-around
  and back references, of 255 characters and 1,000 repetitions at the most. An expression that
  still takes the database longer than `[database] reader_statement_seconds` is refused.
- **A query string** has 128 values at the most, of all parameters together and with the items
  between commas, and 8,192 characters (the server takes 4,094 bytes of a request's first line);
  more is answered 400. So it is in the image, network, volume and placement APIs, and in the
  embedded Keystone.
- **Texts** may hold any printable character of Unicode, where Nova stops at U+FFFF; a line feed
  at the end of a name is refused, where Nova lets it pass.
- **Faults** say what happened to a server, for its owner without host names. Administrators also
  see `details`: category, host, task, log, what was cleaned up and what to do.
- **`progress`** is in percent of the disks and the memory that the running step copies; 0 where
  Proxmox VE doesn't report it.
- **Links** carry the URL under which the client came (`Host`, and what the proxies that
  `[web] trusted_proxies` names say in `X-Forwarded-Proto`, `-Host` and `-Prefix`), or
  `[api] compute_link_prefix`. A `Host` that is none is answered 400.

## Explanations

`GET /explanations/{subject}` is micronova's own. The subject is a request ID, a global request ID
or the UUID of a server, a port, a volume, a snapshot or transfer of a volume, or an image. Those
that are deleted, other than ports, are still explained, and so are requests that were refused
(with `state` `refused`, no `server`, and why in `message`). The answer is
`{"explanation": {"subject": …, "operations": […]}}`; where the
host of the server can't be used, `host`: its `name`, `state` (up, down) and `health`, why it
can't; owners read only that it is down. Of a server that exists operators also read
`move`: its `way` to another host (`live`, `cold`, null) and the `obstacle`. Of a port there is
also `port`: its status, addresses, groups and server, whose operations follow; of an image
`image`: its status, owner, and the server that it is a copy of. Of a volume there is `volume`: its
status, size, type and servers, of a snapshot `snapshot`, and of a transfer `transfer`, whose
volume's operations follow. Each operation has

| field | what |
|---|---|
| `action`, `server`, `request_id`, `global_request_id`, `project_id`, `user_id` | who did what |
| `state`, `attempts`, `held`, `message`, `started_at`, `updated_at`, `finished_at` | how it \
stands |
| `transitions` | `at`, `from` and `to`: vm_state and task_state |
| `events` | the steps: `name`, `attempt`, times, `result`; for operators `host`, `upid`, \
`detail` |
| `decisions` | whether a host was found, which filters refused, the reason if nowhere; for \
operators how many hosts were considered, each host's reason, scores, claims |
| `faults` | `category`, `code`, `message`, `at`; for operators `host`, `upid`, `log_tail`, \
`cleaned`, `left`, `remedy` |
| `forgotten` | null, or since when (`at`) the other details are not kept any \
more, and how many days after the end that was (`after_days`) |

The first steps are `api_request`, from the arrival of the request on, with `method`, `path` and
`status` in its `detail`, and `conductor_take_quota`, with `limit` (-1: none), `used` and `asked`
of each resource: owners read these details too. A step that copies for some seconds has
`progress`: `percent`, `disk_bytes` of `disk_total_bytes`, `memory_bytes` of
`memory_total_bytes`, and `seconds_left` by the rate so far; owners read it too. Of an
administrator's refused requests owners read nothing.

Who may read it says `micronova:explanations:show`, and who reads as an operator
`micronova:explanations:show:operator`.

## Lists of servers

`GET /servers` and `GET /servers/detail` take two parameters of micronova's own, from 2.75 on,
where Nova refuses what it doesn't know; before, they are ignored.

- `micronova:search=TEXT` finds servers with the text in their name, in any case, or at the
  beginning of a tag, of their ID (from four characters on) or of an address; a whole address finds
  no longer ones. It works with all filters, sort keys and pages.
- `micronova:totals=true` adds `micronova:totals`, which is of all pages: `count`, `statuses`
  (status → servers), `vcpus`, `ram` in MiB and `disk` in GiB.

## Managing existing VMs

These resources and actions are micronova's own; operate.md explains them.

- `POST /adoptions` takes
  `{"adoption": {"cluster", "vmid", "project_id", "user_id", "name", "flavor"}}`, the last three
  if need be; `flavor` is a flavor's ID. It answers 202 `{"adoption": {"server_id": …}}`; the
  server is ACTIVE or SHUTOFF when its VM carries our mark, or gone again, and explained. Refused
  with 404: no such cluster or VM; 409: a template, a container, locked, marked by a micronova, its
  VMID or MAC address another server's, a flavor that is smaller than the VM; 400: no such project
  or flavor; 403: over the project's quota.
- Actions of a server, answered 202 without a body: `{"release": null}`, `{"mark": null}`,
  `{"hold": null}`, `{"release-hold": null}`, `{"retry": null}`,
  `{"forget": {"reason": …, "force": …}}`. `retry` is refused with 409 where nothing waits to be
  tried again, and for a server that is held.

## Dry runs

These resources of micronova's own show what would happen; nothing is claimed, written or created.
`without` (repeated) names hosts to leave out.

- `POST /schedule` takes the body of a `POST /servers` and answers
  `{"schedule": {"decisions": […]}}`: for each server, in order, `host` (null: nowhere), \
`alternates`,
  `considered`, `counts` (`{filter: how many it refused}`), `refused` (`{filter: {host: reason}}`,
  of 500 hosts at most), `scores`, `reason`, and `suggestion`: the
  smallest change that would have worked (`changes`, `hosts`, `host`, and `others`: changes as
  small, where it is the server group that is in the way).
- `POST /schedule/fit` takes the body of a `POST /servers` too, and is for all who may create
  servers. It answers `{"fit": {"fits", "servers", "lacks_room", "refused_by"}}`: whether all
  `servers` (of 100 at most) would have a host now; if not, whether it is room that all hosts
  lack, and the names of the filters that refuse the first server without a host. It names no
  host, and takes no `without`. Quotas are not looked at.
- `GET /capacity?flavor=ID` (and `image`, `network`, `availability_zone`) answers
  `{"capacity": {"total": …, "hosts": [{"host", "availability_zone", "count", "limit"}]}}`;
  `limit` is the scarcest resource class, or the reason of the filter that refuses the host.
  Hosts that share a storage have its room once: `total` may be less than the sum.
- `GET /evacuations/{host}` answers `{"evacuation": {"host", "fits", "servers": […]}}`: each server
  of the host with the decision about it, and `kept`: why it can't be evacuated while its node
  is gone (its disk, its config drive or the base of its linked clone is on the node's own
  storage), or null. `fits` says that every server has a host and none is kept.
- `GET /rebalance?limit=N` (10, at most 100) answers
  `{"rebalance": {"score_before", "score_after", "considered", "moves": […], "pinned": […]}}`:
  live migrations within a cluster that would fill the hosts more evenly, in order, each with
  `server`, `name`, `source`, `target`, its cost (`memory_mib`, and `disk_gib` where the disk isn't
  on a storage that both hosts share) and its `gain`. The score is the variance of the shares
  of processors and memory that the hosts have promised, each host counted by its size; 0 is even.
  `pinned` are those of the servers considered that can't be migrated, each with `server`, `name`,
  `host` and `reason`: a linked clone on its node's own storage, or devices.
- `GET /drains/{host}` (`live_only`) answers `{"drain": {"host", "servers": […]}}`: each with
  `server`, `name`, `way` (`live`, `cold`; null: it can't be moved), `target` and `reason`: why it
  can't be moved, or has nowhere to go.

## Bulk migrations

`/bulk-migrations` moves many servers in one operation of the ledger, for administrators: see
operate.md.

- `POST /bulk-migrations` with `{"bulk_migration": {"drain": {"host", "at_once", "live_only",
  "wait_seconds"}}}` or
  `{"bulk_migration": {"rebalance": {"limit", "at_once"}}}` answers 202 with its `id`. Refused with
  404: no such host; 409: it does not answer, or one is under way there already.
- `GET /bulk-migrations/{id}` shows `action`, `host`, `state` (queued and running: under way; done:
  none remain; failed: some do), `message` (how many moved, how many remain, why), `asked` (go,
  pause, cancel), `at_once`, `live_only`, `waits_until` (null: not at all) and `moves`: each with
  `server`, `name`, `state` (waiting, blocked, moving, confirming, moved, gone, failed), `way`,
  `source`, `target`, `operation_id`, `stage`, `tries`, `not_before`, `reason`, `purpose` and
  `waits_since` (null: it does not wait for room).
  `GET /bulk-migrations` (`limit`, `host`) lists the last ones without their moves.
- `POST /bulk-migrations/{id}/action` with `{"pause": null}`, `{"resume": null}` or
  `{"cancel": null}` answers 202; 409 for a bulk migration that has ended or was cancelled.

## Numbers

`GET /metrics`, for administrators, answers `{"metrics": {…}}`: how many `servers` by `vm_state`,
`held_servers`, open `operations` by `state` and `oldest_operation_at`, `services` by `binary` and
`state` (up, down), open `findings` by `kind` and `severity`, `vmids` by `cluster` and `state`, and
when the last `audit` that ended well began and ended. 8 statements, however large the cloud is.
`micronova metrics` has the same in Prometheus' text format: see operate.md.

`GET /waiting` answers `{"waiting": [{"server_id", "project_id", "request_id",
"together_with_request", "needs", "availability_zone", "since", "until", "place", "of",
"overtaken", "is_tried_now", "would_do"}]}`: the servers of the project that wait for room on a
host, by the time of their arrival; to administrators those of all projects, with the host that is
kept for each (`kept_host`), the host that lacks least (`nearest`: `host` and what it `lacks` by
resource class; null: none, or more than room is wrong) and a host another one like which would do
(`one_more_host_like`). `would_do` is the smallest server of its project whose end would make room,
beside what is free there; null: none, or servers of several projects are listed. Hosts are looked
at by room, zone and traits, not by what other filters ask for; servers that are placed together
name none. Administrators also read, on the first page, the `moves` of drains that wait for room,
by since when: `bulk_migration`, `action`, `request_id`, `server_id`, `project_id`, the `host` that
it is to leave, `needs`, `availability_zone`, `since`, `until` and the `reason`. `needs` are
amounts by resource class; `place` counts all projects' servers.
`limit` and `marker` (a `place`) page over them. See scheduler.md.

`GET /waiting/hosts`, for administrators, answers `{"waiting": how many wait, "kinds":
[{"like_host", "availability_zone", "capacity", "traits", "hosts_now", "more_hosts", "takes"}]}`:
for each kind of host that there is (hosts of a zone that offer the same; `capacity` by resource
class, of an empty one; `traits`: those among its own that somebody who waits asks for, or forbids)
how many more of it would have room for those that one of them can take, and how many these are.
Room, zones and traits are counted, not what other filters ask for.

`GET /queues`, for administrators, answers `{"hosts": [{"id", "host", "worker", "state", "health",
"web_url", "reported_seconds_ago", "queues"}]}`: how each host is, and what runs and waits there,
by the last heartbeat of its agent, whose process `worker` names. `state` is `down` where the agent
doesn't report or can't reach the node, as in `/os-services`; `health` is a sentence that says why
the host can't be used, or what of it can't be read, else null; `web_url` is the node in the web
interface of Proxmox VE (`[proxmox:<name>] web_url`), null where none is known. `host` asks for one
host, `name` for those whose names contain it, `unwell=true` for those whose health says something,
`state=up` or `state=down` for those in that state;
`limit` and `marker` (a host's `id`) page over them in the order of `/os-hypervisors`.
`queues` is null where the agent's release doesn't say. Each has

| field | what |
|---|---|
| `kind`, `name` | `operations`: those that the agent carries out; or `storage`, the name of one: \
what copies, makes or removes disks there. A storage with nothing to do is left out |
| `width` | how many run at a time. That of a storage is learnt, and changes |
| `shared` | whether the width is for several hosts together: those of the worker, or those that \
share the storage. The numbers below are the host's own |
| `running`, `waiting` | how many. An operation that waits for a storage runs |
| `oldest_waiting_seconds` | for how long the oldest operation in the queue had waited; null: \
the queue is empty |

`GET /capacity/total`, for administrators, answers `{"total_capacity": {…}}`: the number of
`hosts`, `hosts_up`, and `hosts_taking_servers` (enabled, up and well); `resources`, by
`resource_class` (VCPU, MEMORY_MB) of the hosts that take servers, as placement counts: without
what is reserved, and overcommitted; how many `storages` take disks, and their `storage_gib`, a
shared one counted once, as Proxmox VE fills them. Each amount has `total`, `used` and `free`, all
of them sums, and `most_free`: the `name` of the one host or storage with the most room, and how
much is `free` there, which is the most that one server or volume can get.

## Who did what

`GET /operations`, for administrators, answers `{"operations": […]}`: what was asked for in all
projects, newest first, with `order=oldest` oldest first. `project_id` and `user_id` ask for those
of one project or user, `state` for those in a state (queued, running, unwinding, done, failed) or
with `open` for those that haven't ended; `limit` and `marker` (an `id`) page over them. Each has

| field | what |
|---|---|
| `id`, `request_id`, `global_request_id` | `GET /explanations/{request_id}` says how it went |
| `action`, `resource_type`, `resource_id` | what was done to what; `resource_name` is null where \
it has none, or is gone |
| `user_id`, `user_name`, `project_id`, `project_name` | who: the names are those of the token, \
null where it was nobody, as for what the cloud does by itself |
| `remote_address` | from where: the client's address, or that of the last proxy that isn't \
trusted (`[web] trusted_proxies`); null of what the cloud does by itself, and of what an older \
release did |
| `state`, `attempt`, `message`, `not_before` | how it stands: the sentence of a failure, and \
until when it isn't tried again |
| `started_at`, `updated_at`, `finished_at` | when |

These are the changes that the ledger has: of servers, volumes, their snapshots and backups,
images, networks with vnets, groups and hosts. The audit log (`[audit_log] file`) of the APIs,
where it is on, has every request, also those that only read.

## Storages and tasks of nodes

`GET /storages`, for administrators, answers `{"storages": […]}`: those of all hosts that are on, a
shared one once, by cluster, name and node; with `host` those that it sees; `limit` and `marker`
(an `id`) page over them. Each has `id`, `cluster`, `name`, `type`, `shared`, `active`, `content`
(what it takes), `total_gib` and `available_gib`, `hosts` (how many see it), and `host`, one of
them, whose `/hosts/{host}/metrics?storage=` has its measurements.

`GET /hosts/{host}/tasks`, for administrators, answers `{"tasks": […]}`: the newest tasks of the
host's node in Proxmox VE (`limit`: 100 at most), those that run first, those of all users. Each
has `id` (the UPID), `kind`, `subject` (a VMID, say), `user` with the API token, `started_at`,
`finished_at` and `result` (both null while it runs). Proxmox VE is asked at once: 503 where the
agent or the node doesn't answer.

## Measurements

`GET /servers/{id}/metrics?period=hour|day|week|month|year`, for all who may see the server, and
`GET /hosts/{host}/metrics`, for administrators (`host` is the `hypervisor_hostname` of
`/os-hypervisors`; with `storage` that of one of its storages), are micronova's own: the extension
`micronova-metrics` of `GET /extensions`. They show what
Proxmox VE recorded; without `period` of the last hour. The answer is `{"metrics": {…}}`:

- `server_id`, or `host` and `storage`: of what.
- `period` and `resolution_seconds`: the period, and the length of an interval. A day's is 10
  minutes, a week's an hour, a month's 4 hours, a year's 2 days, or what the release of Proxmox VE
  records if that is longer (8.4: 30 minutes, 3 hours, 12 hours, a week).
- `read_at`: when Proxmox VE was asked.
- `times`: the ends of the intervals, ascending; the newest interval may be shorter.
- `series`: each with `name`, `unit` (`percent`, `count`, `bytes`, `bytes_per_second`,
  `processes`), `description`, and `values`: the mean of each interval, null where nothing is
  known, as while the server is off.

A server has `cpu` (percent of all its processors together), `vcpus`, `memory_used`, `memory`,
`memory_of_host`, `network_in`, `network_out` (as the guest sees it), `disk_read`, `disk_written`,
`cpu_pressure`, `memory_pressure` and `disk_pressure`; a host `cpu`, `cpus`, `io_wait`, `load`,
`memory_used`, `memory`, `memory_available`, `swap_used`, `swap`, `root_used`, `root`, the network
and the pressures; a storage `used` and `total`. Before 9.0 Proxmox VE doesn't record
`memory_of_host`, `memory_available` and the pressures, which are then left out.

Proxmox VE stores measurements by VMID, and a VMID is used again: intervals that began before the
server had its VMID are left out. So a server has no points of a year in its first days; the
history of an adopted server begins with its adoption, and a move to another cluster begins it
again.

The agent of the host asks Proxmox VE, and stores the answer: one call for a server, a node or a
storage in a minute, however many users look, over all periods. The first look at another period
isn't kept waiting, since a page would have no chart for a minute: it is a call at once, and the
next ones wait a minute longer for it. So five periods that are looked at for an hour are 65 calls
at most. Answers about longer periods are used for half an interval, an hour at most, and each
at most twice as long where others are due. Refused are 409
where the server has no host (not built yet, shelved and offloaded), 404 for another project's
server or an unknown host or storage, 503 while the agent or the node doesn't answer, and for a
minute after a call that failed.

## The audit

`/audits` and `/audit/findings` are micronova's own, for administrators: see operate.md.
`POST /audits` answers 202 with the audit's `id`; `GET /audits/{id}` shows its `state` (queued,
running, done, failed) and, at its end, its `report`: `clean`, `complete`, what was `looked_at`,
`open` findings by kind, how many were `healed`, what was `unseen`. A finding has

| field | what |
|---|---|
| `kind`, `subject`, `severity`, `cause`, `evidence` | what doesn't agree, and what was seen |
| `server_uuid`, `cluster`, `node`, `vmid` | where |
| `first_seen_at`, `last_seen_at`, `healed_at`, `healed_by` | since when, until when |
| `heal`, `remedy` | the verb that is proven to heal it, or null; what an operator can do |
| `heals`, `tried_at`, `answer`, `operation_id` | the tries to heal it, and how the last one went |

`{"heal": {"force": false}}` tries now; a VM that runs asks for `force`, and nothing gets past the
proof.
"""


def document() -> str:
    """Return the chapter, as Markdown."""
    parts = [
        INTRODUCTION,
        "## Routes",
        "",
        "Below `/compute" + VERSION + "`. The versions are those that have the route.",
        "",
        *_table(("method", "path", "versions", "what", "policy"), _routes()),
        "",
        DIFFERENCES,
        "## Microversions",
        "",
        "What each one changed in these routes; those not listed changed others only.",
        "",
        *_table(("version", "change"), _history()),
        "",
        "## Policy",
        "",
        "The rules and their defaults; `[oslo_policy] policy_file` overrides them.",
        "",
        *_table(("rule", "who may", "what"), _rules()),
    ]
    return "\n".join(parts) + "\n"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    names = list(head)
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def _routes() -> Iterable[tuple[str, ...]]:
    for row in ROUTES:
        for http_method in row.methods:
            for handler in row.handlers(http_method):
                yield _route(http_method, f"`{row.path}`", handler)
        for action, handler in row.acting().items():
            yield _route("POST", f"`{row.path}` `{action}`", handler)


def _route(http_method: str, path: str, handler: Handler) -> tuple[str, ...]:
    described = operation_of(handler)
    what = (handler.__doc__ or "").strip().splitlines()[0]
    return (http_method, path, _versions(described), what, _rule(described))


def _versions(described: Operation) -> str:
    since = VERSIONS.text(described.since)
    until = described.until or VERSIONS.newest
    return f"{since} – {VERSIONS.text(until)}"


def _rule(described: Operation) -> str:
    return f"`{described.rule}`" if described.rule else "anybody with a token"


def _history() -> Iterable[tuple[str, ...]]:
    for version, change in HISTORY.items():
        if change != "-":
            yield VERSIONS.text(version), change


def _rules() -> Iterable[tuple[str, ...]]:
    for rule in policies.RULES:
        yield f"`{rule.name}`", f"`{rule.check_str}`", rule.description or ""


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(document(), encoding="utf-8")
