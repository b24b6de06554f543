"""Every metric of every service: name, help and labels. docs/monitor.md is made of it.

Labels are bounded: routes, methods, actions, stages, kinds and categories are the code's; hosts,
clusters and storages the configuration's. Never a request or a path; a server and a project only
where [metrics] guests asks for that.
"""

from __future__ import annotations

from collections.abc import Mapping

from common.metrics.instruments import Counter, Gauge, Histogram, Instrument, Sampled

# Each bucket is a line for each set of labels in each scrape: few where there are many sets.
_LONG = (1.0, 10.0, 60.0, 600.0)
_SHORT = (0.002, 0.02, 0.2, 2.0)
_OF_FEW = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0)

# --- HTTP

_ROUTE = ("api", "method", "route", "action")
HTTP_REQUESTS = Counter(
    "micronova_http_requests_total",
    "Requests answered. route is the template, empty if none was found or the token was refused; "
    "action is what the body of a server's or volume's action names.",
    (*_ROUTE, "status"),
)
HTTP_SECONDS = Histogram(
    "micronova_http_request_seconds",
    "Time until an answer was made; the client's time to read it is not part of it.",
    ("api", "method"),
    _OF_FEW,
)
HTTP_ROUTE_SECONDS = Counter(
    "micronova_http_route_seconds_total",
    "Sum of that time for each route; by the number of its requests it is the average.",
    _ROUTE,
)
HTTP_IN_PROGRESS = Gauge(
    "micronova_http_requests_in_progress", "Requests that are being answered.", ("api",)
)

# --- messages

RPC_CALLS = Counter(
    "micronova_rpc_calls_total",
    "Calls to another service, by how they ended: ok, refused, unavailable, error.",
    ("topic", "method", "result"),
)
RPC_CALL_SECONDS = Histogram(
    "micronova_rpc_call_seconds", "Time until a call was answered.", ("topic", "method")
)
RPC_REPEATED = Counter(
    "micronova_rpc_calls_repeated_total",
    "Calls for which another server was asked, as the first one was silent.",
    ("topic", "method"),
)
RPC_CASTS = Counter(
    "micronova_rpc_casts_total",
    "Messages sent without waiting: ok, or unavailable when the bus took none.",
    ("topic", "method", "result"),
)
RPC_HANDLED = Counter(
    "micronova_rpc_handled_total",
    "Messages answered or carried out here, by how: ok, refused, given_up, unavailable, error.",
    ("topic", "method", "result"),
)
RPC_HANDLING_SECONDS = Histogram(
    "micronova_rpc_handling_seconds", "Time to carry out a message.", ("topic", "method")
)
RPC_WAIT_SECONDS = Histogram(
    "micronova_rpc_wait_seconds", "Time that a message waited for a thread.", ("topic",), _SHORT
)

# --- databases

SQL_STATEMENTS = Counter(
    "micronova_sql_statements_total",
    "Statements sent to a database, by its name, the engine's role and the statement's verb.",
    ("database", "role", "verb"),
)
SQL_SECONDS = Histogram(
    "micronova_sql_statement_seconds",
    "Time of a statement until its answer begins.",
    ("database", "role"),
    _SHORT,
)
SQL_ERRORS = Counter(
    "micronova_sql_errors_total", "Statements that a database refused.", ("database", "role")
)
SQL_REPEATED = Counter(
    "micronova_sql_transactions_repeated_total",
    "Transactions of a conductor that were run again: a deadlock, a lost connection, a row that "
    "another one wrote first.",
)

# --- operations

OPERATIONS_ENDED = Counter(
    "micronova_operations_ended_total",
    "Operations that this conductor ended, by action and how: done or failed.",
    ("action", "state"),
)
OPERATION_SECONDS = Histogram(
    "micronova_operation_seconds",
    "Time from the request to the end of an operation.",
    ("action", "state"),
    _LONG,
)
OPERATION_FAULTS = Counter(
    "micronova_operation_faults_total",
    "Failures stored with an operation, one for each attempt; action create: builds that failed.",
    ("action", "category"),
)
OPERATION_RETRIES = Counter(
    "micronova_operation_retries_total", "New attempts begun after a failure.", ("action",)
)
OPERATION_BACKOFF_SECONDS = Histogram(
    "micronova_operation_backoff_seconds",
    "Time for which an operation was put off, mostly before its next attempt.",
    (),
    _LONG,
)
OPERATION_TAKEOVERS = Counter(
    "micronova_operation_takeovers_total",
    "Operations taken up because they were due or their lease had run out.",
    ("action",),
)
OPERATIONS_POSTPONED = Counter(
    "micronova_operations_postponed_total",
    "Operations put off because another service didn't answer (unavailable), the flow broke "
    "(error), or the database was restored (held).",
    ("action", "reason"),
)
STAGES = Counter(
    "micronova_stages_total",
    "Stages and undos carried out by a conductor: went on, ended or waits or was handed over "
    "(paused), failed (error).",
    ("action", "stage", "result"),
)
STAGE_SECONDS = Histogram(
    "micronova_stage_seconds", "Time of a stage or undo in a conductor.", ("action", "stage")
)
POOL_HELD = Sampled(
    "micronova_pool_operations",
    "Operations and commands that have a thread of a pool, or wait for one.",
    ("pool",),
)
POOL_THREADS = Sampled("micronova_pool_threads", "Threads of a pool.", ("pool",))
POOL_WAIT_SECONDS = Histogram(
    "micronova_pool_wait_seconds",
    "Time that an operation or command waited for a thread of a pool.",
    ("pool",),
    _LONG,
)

# --- loops

LOOP_SUCCESS = Gauge(
    "micronova_loop_success_timestamp_seconds",
    "When a periodic task or another loop last did its work.",
    ("loop",),
)
LOOP_PERIOD = Gauge(
    "micronova_loop_period_seconds", "In how long it is to do so again.", ("loop",)
)
LOOP_FAILURES = Counter("micronova_loop_failures_total", "Turns of it that failed.", ("loop",))
CLOCK_OFFSET = Gauge(
    "micronova_clock_offset_seconds",
    "By how much this machine's clock is ahead of the database's, at the last comparison.",
    added_up=False,
)

# --- scheduler

DECISIONS = Counter(
    "micronova_scheduler_decisions_total",
    "Decisions by their result: placed, no_valid_host, unavailable.",
    ("result",),
)
DECISION_SECONDS = Histogram(
    "micronova_scheduler_decision_seconds", "Time of a decision with its claim.", (), _OF_FEW
)
REFUSED_HOSTS = Counter(
    "micronova_scheduler_refused_hosts_total",
    "Hosts refused by a filter, summed over all decisions.",
    ("filter",),
)
CLAIMS = Counter(
    "micronova_scheduler_claims_total",
    "Claims by their result: claimed, taken (by another request), full (passed over in a claim), "
    "changed (each time), together (not to be had for all at once), left (too few for min_count).",
    ("result",),
)
CLAIM_CONFLICTS = Counter(
    "micronova_scheduler_claim_conflicts_total",
    "Claims repeated because a generation of placement had changed.",
)

# --- agents

COMMANDS = Counter(
    "micronova_commands_total",
    "Commands carried out by an agent; category: of the failure, empty where there is none.",
    ("command", "result", "category"),
)
COMMAND_SECONDS = Histogram(
    "micronova_command_seconds", "Time of a command from its arrival.", ("command",), _LONG
)
STEPS = Counter(
    "micronova_steps_total", "Steps and undos of agents, by result.", ("step", "result")
)
STEP_SECONDS = Histogram("micronova_step_seconds", "Time of a step.", ("step",), _LONG)
PROXMOX_CALLS = Counter(
    "micronova_proxmox_calls_total",
    "Calls to Proxmox VE by how they ended: ok, a category of failure, not_sent, lost.",
    ("cluster", "method", "call", "result"),
)
PROXMOX_CALL_SECONDS = Histogram(
    "micronova_proxmox_call_seconds",
    "Time until Proxmox VE answered.",
    ("cluster", "method", "call"),
)
PROXMOX_TASKS = Counter(
    "micronova_proxmox_tasks_total",
    "Tasks of Proxmox VE that were waited for: ok, or a category of failure.",
    ("cluster", "kind", "result"),
)
PROXMOX_TASK_SECONDS = Histogram(
    "micronova_proxmox_task_seconds",
    "Time until a task was seen to end.",
    ("cluster", "kind"),
    _LONG,
)
PROXMOX_REACHABLE = Gauge(
    "micronova_proxmox_reachable",
    "1 if the last refresh of a cluster by this worker succeeded, else 0.",
    ("cluster",),
)
TOKEN_EXPIRY = Gauge(
    "micronova_proxmox_token_expiry_timestamp_seconds",
    "When the worker's API token expires; +Inf: never. Absent if the token may not read itself.",
    ("cluster",),
)
CERTIFICATE_EXPIRY = Gauge(
    "micronova_proxmox_certificate_expiry_timestamp_seconds",
    "When the certificate of a node's API expires, as it was read last.",
    ("cluster", "node"),
)
STORAGE_QUEUE_WAIT_SECONDS = Histogram(
    "micronova_storage_queue_wait_seconds",
    "Time that an operation waited for a slot of a storage.",
    ("cluster", "storage"),
    _LONG,
)
STORAGE_QUEUE_REFUSED = Counter(
    "micronova_storage_queue_locks_missed_total",
    "Operations for which Proxmox VE gave up on the storage's lock.",
    ("cluster", "storage"),
)
_QUEUE = ("cluster", "node", "storage")
STORAGE_QUEUE_WIDTH = Sampled(
    "micronova_storage_queue_width", "Slots of a storage now; node is empty if shared.", _QUEUE
)
STORAGE_QUEUE_USED = Sampled("micronova_storage_queue_used", "Slots in use.", _QUEUE)
STORAGE_QUEUE_WAITING = Sampled(
    "micronova_storage_queue_waiting", "Operations that wait for a slot.", _QUEUE
)
_HOST = ("cluster", "host")
HOST_HEALTHY = Sampled(
    "micronova_host_healthy", "1 if a host could build at the last refresh, else 0.", _HOST
)
HOST_CAPACITY = Sampled(
    "micronova_host_capacity",
    "What may be claimed of a host: VCPUs, or bytes of memory_bytes and disk_bytes.",
    (*_HOST, "resource"),
)
HOST_USED = Sampled(
    "micronova_host_used",
    "What is really in use on a host: busy processors, bytes.",
    (*_HOST, "resource"),
)
STORAGE_ACTIVE = Sampled(
    "micronova_storage_active",
    "1 if a node has a storage in use, else 0.",
    (*_HOST, "storage"),
)
STORAGE_BYTES = Sampled(
    "micronova_storage_bytes",
    "Size of a storage (kind total) and what is free of it (kind available).",
    (*_HOST, "storage", "kind"),
)

_GUEST = ("project", "server")
GUEST_RUNNING = Sampled("micronova_guest_running", "1 if a server's VM runs, else 0.", _GUEST)
GUEST_CPUS = Sampled(
    "micronova_guest_cpus",
    "A server's processors (kind total) and those that are busy (kind used).",
    (*_GUEST, "kind"),
)
GUEST_MEMORY = Sampled(
    "micronova_guest_memory_bytes",
    "A server's memory (kind total) and what its guest uses (kind used).",
    (*_GUEST, "kind"),
)
GUEST_NETWORK = Sampled(
    "micronova_guest_network_bytes",
    "What a server has received (direction in) and sent (out) since its VM started: use rate().",
    (*_GUEST, "direction"),
)
GUEST_DISK = Sampled(
    "micronova_guest_disk_bytes",
    "What a server has read (direction read) and written (written) since its VM started.",
    (*_GUEST, "direction"),
)
GUEST_UPTIME = Sampled(
    "micronova_guest_uptime_seconds", "Time since a server's VM started, 0 if it is off.", _GUEST
)

DOCTOR_FINDINGS = Sampled(
    "micronova_doctor_findings",
    "What a worker's rounds found wrong with its clusters; code: see docs/doctor.md; level: "
    "broken, warning or note.",
    ("cluster", "code", "level"),
)

# --- consoles

CONSOLE_SESSIONS = Sampled("micronova_console_sessions", "Open consoles of a proxy.")

# --- the record, by conductors

RECORD_READ = Sampled(
    "micronova_record_read_timestamp_seconds",
    "When a conductor read the metrics of the database that it shows.",
)
SERVERS = Sampled("micronova_servers", "Servers by vm_state", ("vm_state",))
RECORD_HELD = Sampled(
    "micronova_record_held_timestamp_seconds",
    "Since when everything that destroys is held, as the database was restored; 0: it isn't",
)
HELD_SERVERS = Sampled("micronova_held_servers", "Servers that are held")
OPEN_OPERATIONS = Sampled("micronova_open_operations", "Operations under way", ("state",))
OPEN_BY_ACTION = Sampled(
    "micronova_open_operations_by_action", "Operations under way.", ("action", "state")
)
STUCK_OPERATIONS = Sampled(
    "micronova_stuck_operations",
    "Open operations that are past their deadline, or were due without being taken up, for ten "
    "minutes.",
    ("action",),
)
OLDEST_OPERATION = Sampled(
    "micronova_oldest_operation_timestamp_seconds", "Begin of the oldest open operation"
)
WAITING_SERVERS = Sampled(
    "micronova_waiting_servers",
    "Servers that wait for room on a host; zone is empty for those that ask for none.",
    ("zone",),
)
WAITING_RESOURCES = Sampled(
    "micronova_waiting_resources",
    "What they need: VCPUs, or bytes of memory_bytes and disk_bytes.",
    ("zone", "resource"),
)
WAITING_SINCE = Sampled(
    "micronova_waiting_oldest_timestamp_seconds", "Since when the first of them waits", ("zone",)
)
WAITING_SCOPES = Sampled(
    "micronova_waiting_servers_by_scope",
    "Servers that wait for room, by zone, flavor and the traits that they ask for, or forbid with "
    "an exclamation mark; separated by commas.",
    ("zone", "flavor", "traits"),
)
_KIND = ("zone", "like_host", "traits")
WAITING_HOSTS = Sampled(
    "micronova_waiting_more_hosts",
    "How many more hosts of a kind would take those that wait and would fit there.",
    _KIND,
)
WAITING_TAKES = Sampled(
    "micronova_waiting_more_hosts_take", "How many of those that wait these would take", _KIND
)
LEASES = Sampled(
    "micronova_leases",
    "Leases of open operations: whose (conductor, agent) and whether they are held or expired.",
    ("owner", "state"),
)
FINDINGS = Sampled("micronova_audit_findings", "Open findings", ("kind", "severity"))
AUDIT_STARTED = Sampled(
    "micronova_audit_started_timestamp_seconds", "Begin of the last audit that ended well"
)
AUDIT_FINISHED = Sampled(
    "micronova_audit_finished_timestamp_seconds", "End of the last audit that ended well"
)
SERVICES = Sampled("micronova_services", "Services that are up or down", ("binary", "state"))
VMIDS = Sampled("micronova_vmids", "VMIDs that are not free", ("cluster", "state"))
CLUSTER_HOSTS = Sampled(
    "micronova_cluster_hosts",
    "Hosts of a cluster: up (takes new servers), disabled, unhealthy, down.",
    ("cluster", "state"),
)
_RESOURCE = ("cluster", "resource")
CLUSTER_CAPACITY = Sampled(
    "micronova_cluster_capacity",
    "What may be claimed of the hosts that are up: vcpus, memory_bytes, disk_bytes.",
    _RESOURCE,
)
CLUSTER_LARGEST = Sampled(
    "micronova_cluster_largest_host_capacity", "The same of the largest of them.", _RESOURCE
)
CLUSTER_CLAIMED = Sampled(
    "micronova_cluster_claimed", "What servers on the hosts of a cluster have of it.", _RESOURCE
)
CLUSTER_USED = Sampled(
    "micronova_cluster_used", "What was really in use when their agents last said so.", _RESOURCE
)


# --- notifications

NOTIFICATIONS_SENT = Counter(
    "micronova_notifications_sent_total", "Notifications that the bus has taken."
)
NOTIFICATION_FAILURES = Counter(
    "micronova_notification_failures_total",
    "Tries to send a notification that the bus didn't take; they are repeated.",
)
NOTIFICATIONS_SET_ASIDE = Counter(
    "micronova_notifications_set_aside_total",
    "Notifications that can't be sent, whatever the bus does: kept in the outbox with the reason.",
)
NOTIFICATIONS_DROPPED = Counter(
    "micronova_notifications_dropped_total",
    "Unsent notifications that were deleted, as more than max_pending waited.",
)
NOTIFICATIONS_LOST = Counter(
    "micronova_notifications_lost_total",
    "Transactions whose notifications could not be written; the operations went on.",
)
NOTIFICATIONS_PENDING = Sampled(
    "micronova_notifications_pending", "Notifications in the outbox, at the most."
)
NOTIFICATIONS_OLDEST = Sampled(
    "micronova_notifications_oldest_timestamp_seconds",
    "When the oldest unsent notification was written.",
)

# --- traces

TRACES_SENT = Counter(
    "micronova_traces_sent_total", "Operations whose spans were sent, or were not to be sent."
)
TRACE_FAILURES = Counter(
    "micronova_trace_failures_total", "Batches of spans that the endpoint didn't take."
)
TRACES_DROPPED = Counter(
    "micronova_traces_dropped_total", "Operations that were not sent, as too many waited."
)

ALL: tuple[Instrument, ...] = tuple(
    one for one in list(globals().values()) if isinstance(one, Instrument)
)

#: who answers a metric, by the beginning of its name; the first that fits counts
ANSWERED_BY: Mapping[str, str] = {
    "micronova_http_": "api, placement",
    "micronova_rpc_calls": "all but placement",
    "micronova_rpc_call_": "all but placement",
    "micronova_rpc_casts": "all but placement",
    "micronova_rpc_": "conductor, scheduler, compute",
    "micronova_sql_transactions": "conductor",
    "micronova_sql_": "api, conductor, placement",
    "micronova_pool_": "conductor, compute",
    "micronova_loop_": "conductor, scheduler, compute",
    "micronova_clock_": "all but the dashboard",
    "micronova_scheduler_": "scheduler",
    "micronova_console_": "console",
    "micronova_command": "compute",
    "micronova_step": "compute",
    "micronova_proxmox_": "compute",
    "micronova_storage_": "compute",
    "micronova_doctor_": "compute",
    "micronova_guest_": "compute",
    "micronova_host_": "compute",
    "micronova_": "conductor",
}


def answered_by(name: str) -> str:
    """Return the services that answer a metric."""
    return next(who for begin, who in ANSWERED_BY.items() if name.startswith(begin))


def document() -> str:
    """Return the table of all metrics, for docs/monitor.md."""
    lines = ["| metric | type | labels | of | meaning |", "|---|---|---|---|---|"]
    for one in ALL:
        labels = ", ".join(f"`{label}`" for label in one.labels)
        text = one.text.rstrip(".").replace("|", "\\|")
        lines.append(
            f"| `{one.name}` | {one.kind} | {labels} | {answered_by(one.name)} | {text} |"
        )
    return "\n".join(lines) + "\n"
