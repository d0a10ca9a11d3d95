"""Every refusal: its code, whether a retry can help, and the next step. A refusal is a value, never an exception."""

from enum import StrEnum

import msgspec


class Retry(StrEnum):
    """What a caller may do with a refused request."""

    NEVER = "never"
    AFTER_CHANGE = "after_change"
    SAME_REQUEST = "same_request"


class Code(StrEnum):
    """Why a request changed nothing. Add a code; never rename or reuse one."""

    BAD_JSON = "bad_json"
    BAD_TEXT = "bad_text"
    BAD_FIELD = "bad_field"
    TOO_LARGE = "too_large"
    TOO_DEEP = "too_deep"
    TOO_SLOW = "too_slow"
    UNKNOWN_AGENT = "unknown_agent"
    UNKNOWN_EVENT = "unknown_event"
    FOREIGN_HOST = "foreign_host"
    FOREIGN_ORIGIN = "foreign_origin"
    NOT_JSON = "not_json"
    NO_CREDENTIAL = "no_credential"
    NO_SESSION = "no_session"
    BAD_TICKET = "bad_ticket"
    FOREIGN_INSTANCE = "foreign_instance"
    UNAVAILABLE = "unavailable"
    NO_LIST = "no_list"
    NOT_RUNNING = "not_running"
    OTHER_VERSION = "other_version"
    BROKEN_SETTINGS = "broken_settings"
    CHANGED_MEANWHILE = "changed_meanwhile"
    NOT_FOUND = "not_found"
    # the loop
    BAD_REQUEST = "bad_request"
    REQUEST_MISMATCH = "request_mismatch"
    LEDGER_FULL = "ledger_full"
    CONSUMER_FENCED = "consumer_fenced"
    RUN_REQUIRED = "run_required"
    RUN_CLOSED = "run_closed"
    RUN_PAUSED = "run_paused"
    RING = "ring"
    TASK_EXISTS = "task_exists"
    TASK_NOT_STARTABLE = "task_not_startable"
    ATTEMPT_UNSETTLED = "attempt_unsettled"
    PLACEMENT_REQUIRED = "placement_required"
    CAPACITY = "capacity"
    CIRCUIT_OPEN = "circuit_open"
    DEPTH = "depth"
    LIFECYCLE_CONFLICT = "lifecycle_conflict"
    SENDER_NOT_ASSIGNEE = "sender_not_assignee"
    NOT_LEAD = "not_lead"
    STALE_DISPATCH = "stale_dispatch"
    ALREADY_DECIDED = "already_decided"
    SAME_WORKER = "same_worker"
    OBLIGATIONS = "obligations"
    NO_READER = "no_reader"
    ASKER_WAITS = "asker_waits"
    WAITER_EXISTS = "waiter_exists"
    STALE_DELIVERY = "stale_delivery"
    MAILBOX_FULL = "mailbox_full"
    TAKEN_OVER = "taken_over"
    HOST_AWAY = "host_away"
    AGENT_MISSING = "agent_missing"
    AGENT_CANNOT = "agent_cannot"
    REPOSITORY_UNUSABLE = "repository_unusable"
    BASE_UNKNOWN = "base_unknown"
    WORKTREE_TAKEN = "worktree_taken"
    BAD_PLACE = "bad_place"
    SETUP_FAILED = "setup_failed"
    NO_SPACE = "no_space"
    TMUX_MISSING = "tmux_missing"
    COMPOSER_BUSY = "composer_busy"
    EXPIRED = "expired"


class Advice(msgspec.Struct, frozen=True):
    """What a code means, whether a retry helps, the HTTP status it travels as, and what to do next."""

    meaning: str
    retry: Retry
    status: int
    next: tuple[str, ...]


ADVICE: dict[Code, Advice] = {
    Code.BAD_JSON: Advice("the body is not one JSON object", Retry.AFTER_CHANGE, 400, ("send one JSON object",)),
    Code.BAD_TEXT: Advice("the body is not UTF-8", Retry.AFTER_CHANGE, 400, ("send UTF-8",)),
    Code.BAD_FIELD: Advice(
        "a field is missing, of the wrong type or out of range", Retry.AFTER_CHANGE, 422, ("mend the field that the message names",)
    ),
    Code.TOO_LARGE: Advice("the body is over the limit", Retry.AFTER_CHANGE, 413, ("send less",)),
    Code.TOO_DEEP: Advice("the body is nested deeper than the limit", Retry.AFTER_CHANGE, 400, ("send a flatter object",)),
    Code.TOO_SLOW: Advice("the body did not arrive in time", Retry.SAME_REQUEST, 408, ("send it again",)),
    Code.UNKNOWN_AGENT: Advice("no such agent", Retry.AFTER_CHANGE, 404, ("tocsin hooks status",)),
    Code.UNKNOWN_EVENT: Advice("this agent has no such event", Retry.AFTER_CHANGE, 422, ("tocsin hooks status",)),
    Code.FOREIGN_HOST: Advice("the Host header is not this server", Retry.NEVER, 421, ("use the address in the endpoint file",)),
    Code.FOREIGN_ORIGIN: Advice("a web page of another origin may not speak here", Retry.NEVER, 403, ("use the tocsin command",)),
    Code.NOT_JSON: Advice("only application/json is taken", Retry.AFTER_CHANGE, 415, ("send Content-Type: application/json",)),
    Code.NO_CREDENTIAL: Advice("the credential is missing or wrong", Retry.AFTER_CHANGE, 401, ("tocsin hooks status",)),
    Code.NO_SESSION: Advice("the page has no session, or it is over", Retry.AFTER_CHANGE, 401, ("tocsin open",)),
    Code.BAD_TICKET: Advice("the ticket was used, is older than a minute, or is none", Retry.AFTER_CHANGE, 401, ("tocsin open",)),
    Code.FOREIGN_INSTANCE: Advice(
        "the credential is another instance's", Retry.AFTER_CHANGE, 401, ("tocsin hooks status", "tocsin doctor")
    ),
    Code.UNAVAILABLE: Advice("the store or the bus does not answer", Retry.SAME_REQUEST, 503, ("tocsin doctor",)),
    Code.NOT_RUNNING: Advice(
        "no instance runs on that state folder", Retry.AFTER_CHANGE, 503, ("tocsin up", "--state DIR, or TOCSIN_STATE")
    ),
    Code.OTHER_VERSION: Advice("the running instance is of another version", Retry.AFTER_CHANGE, 503, ("tocsin down", "tocsin up")),
    Code.NO_LIST: Advice("the bus is there, but nobody publishes this list", Retry.SAME_REQUEST, 503, ("tocsin up", "tocsin doctor")),
    Code.BROKEN_SETTINGS: Advice(
        "a settings file cannot be read; it was left as it is", Retry.AFTER_CHANGE, 422, ("mend the file that the message names",)
    ),
    Code.CHANGED_MEANWHILE: Advice(
        "somebody wrote the file at the same moment; it was left as they wrote it", Retry.SAME_REQUEST, 409, ("run the command again",)
    ),
    Code.NOT_FOUND: Advice("nothing of that name", Retry.AFTER_CHANGE, 404, ("tocsin ls", "tocsin run list")),
    Code.BAD_REQUEST: Advice("the request is not well formed", Retry.AFTER_CHANGE, 422, ("mend what the message names",)),
    Code.REQUEST_MISMATCH: Advice(
        "this request id was used for something else", Retry.AFTER_CHANGE, 409, ("use a new request id", "tocsin request show ID")
    ),
    Code.LEDGER_FULL: Advice(
        "the ledger has reached its size; nothing is dropped from it",
        Retry.AFTER_CHANGE,
        507,
        ("tocsin run list --closed", "tocsin run purge RUN"),
    ),
    Code.CONSUMER_FENCED: Advice(
        "a newer consumer holds this: asking again cannot help",
        Retry.NEVER,
        409,
        ("stop", "tocsin run use RUN (takes it back, with a trace)"),
    ),
    Code.RUN_REQUIRED: Advice("which Run?", Retry.AFTER_CHANGE, 422, ("tocsin run create OBJECTIVE", "tocsin run use RUN")),
    Code.RUN_CLOSED: Advice("the Run is closed", Retry.NEVER, 409, ("tocsin run create OBJECTIVE",)),
    Code.RUN_PAUSED: Advice("the Run is paused", Retry.AFTER_CHANGE, 409, ("tocsin run resume RUN",)),
    Code.RING: Advice(
        "the dependencies would form a ring", Retry.AFTER_CHANGE, 422, ("leave out one of the dependencies that the message names",)
    ),
    Code.TASK_EXISTS: Advice("there is another Task of that id", Retry.AFTER_CHANGE, 409, ("tocsin task show TASK",)),
    Code.TASK_NOT_STARTABLE: Advice(
        "the Task is not ready", Retry.AFTER_CHANGE, 409, ("tocsin task show TASK", "tocsin task list --ready")
    ),
    Code.ATTEMPT_UNSETTLED: Advice(
        "an attempt of this Task is unsettled or unknown",
        Retry.AFTER_CHANGE,
        409,
        (
            "tocsin worker show DISPATCH",
            "tocsin worker stop DISPATCH",
            "tocsin worker abandon DISPATCH --reason WHY",
            "tocsin worker supersede TASK --reason WHY",
        ),
    ),
    Code.PLACEMENT_REQUIRED: Advice(
        "where it is to work must be said each time", Retry.AFTER_CHANGE, 422, ("--where current|existing|new-child|new-top-level",)
    ),
    Code.CAPACITY: Advice("as many workers run as are allowed", Retry.AFTER_CHANGE, 429, ("tocsin worker list", "wait for one to settle")),
    Code.CIRCUIT_OPEN: Advice(
        "three attempts in a row have failed", Retry.AFTER_CHANGE, 409, ("tocsin worker list --failed", "tocsin run resume RUN")
    ),
    Code.DEPTH: Advice(
        "workers of workers are not allowed deeper than this", Retry.AFTER_CHANGE, 409, ("do it here", "tocsin run create --depth N")
    ),
    Code.LIFECYCLE_CONFLICT: Advice("there is no such step from here", Retry.AFTER_CHANGE, 409, ("tocsin worker show DISPATCH",)),
    Code.SENDER_NOT_ASSIGNEE: Advice("only the worker of this Dispatch may say that", Retry.NEVER, 403, ("tocsin task show TASK",)),
    Code.NOT_LEAD: Advice(
        "a child agent said it: the lead must say it in its own turn", Retry.AFTER_CHANGE, 409, ("let the main agent run the command",)
    ),
    Code.STALE_DISPATCH: Advice(
        "another attempt is the current one; this report is kept and changes nothing",
        Retry.NEVER,
        409,
        ("stop", "tocsin worker show DISPATCH"),
    ),
    Code.ALREADY_DECIDED: Advice("this round has its verdict", Retry.NEVER, 409, ("tocsin gate list",)),
    Code.SAME_WORKER: Advice("a review must come from another worker than the author", Retry.NEVER, 409, ("tocsin worker start REVIEW",)),
    Code.OBLIGATIONS: Advice(
        "something is unsettled or has no owner yet",
        Retry.AFTER_CHANGE,
        409,
        ("tocsin audit", "tocsin custody list", "tocsin run close --force WHY"),
    ),
    Code.NO_READER: Advice("nobody durable reads that mailbox", Retry.AFTER_CHANGE, 404, ("tocsin worker list",)),
    Code.ASKER_WAITS: Advice(
        "it waits for the answer to a question: a plain message would answer nothing",
        Retry.AFTER_CHANGE,
        409,
        ("tocsin mail reply QUESTION ANSWER",),
    ),
    Code.WAITER_EXISTS: Advice("another wait on this mailbox is parked", Retry.AFTER_CHANGE, 409, ("end the other wait",)),
    Code.STALE_DELIVERY: Advice("no such Delivery is outstanding here", Retry.NEVER, 409, ("tocsin mail check",)),
    Code.MAILBOX_FULL: Advice(
        "the mailbox holds as many unread messages as it may; nothing unread is dropped",
        Retry.AFTER_CHANGE,
        507,
        ("tocsin mail check", "tocsin mail ack DELIVERY"),
    ),
    Code.TAKEN_OVER: Advice(
        "a person has used this terminal: it is theirs now",
        Retry.AFTER_CHANGE,
        409,
        ("ask that person", "tocsin custody release DISPATCH --person"),
    ),
    Code.HOST_AWAY: Advice(
        "that machine does not answer: nothing is known of it", Retry.SAME_REQUEST, 503, ("tocsin doctor", "wait until it is back")
    ),
    Code.AGENT_MISSING: Advice("that agent is not installed there", Retry.AFTER_CHANGE, 422, ("install it", "choose another with --agent")),
    Code.AGENT_CANNOT: Advice("that agent cannot do what is asked", Retry.AFTER_CHANGE, 422, ("choose another with --agent",)),
    Code.REPOSITORY_UNUSABLE: Advice("the repository cannot be used", Retry.AFTER_CHANGE, 422, ("mend what the message names",)),
    Code.BASE_UNKNOWN: Advice("there is no such commit or branch to start from", Retry.AFTER_CHANGE, 422, ("--base REVISION",)),
    Code.WORKTREE_TAKEN: Advice(
        "a worktree, branch or folder of that name is there",
        Retry.AFTER_CHANGE,
        409,
        ("choose another name", "--where existing --path PATH"),
    ),
    Code.BAD_PLACE: Advice("that path lies outside what is allowed, or is no folder", Retry.AFTER_CHANGE, 422, ("choose another path",)),
    Code.SETUP_FAILED: Advice(
        "the setup command failed; what it had made was removed", Retry.AFTER_CHANGE, 422, ("mend the setup command",)
    ),
    Code.NO_SPACE: Advice("there is no space left on that machine", Retry.AFTER_CHANGE, 507, ("make room", "tocsin audit")),
    Code.TMUX_MISSING: Advice("tmux is not installed there", Retry.AFTER_CHANGE, 422, ("install tmux", "--terminal process")),
    Code.COMPOSER_BUSY: Advice(
        "somebody's text or a dialog is in that pane", Retry.AFTER_CHANGE, 409, ("wait", "tocsin worker read DISPATCH")
    ),
    Code.EXPIRED: Advice("the order was too old when it was read", Retry.AFTER_CHANGE, 410, ("give it again",)),
}


class Refusal(msgspec.Struct, frozen=True):
    """A request that changed nothing, and why. `message` is for a person and holds no payload."""

    code: Code
    message: str

    @property
    def advice(self) -> Advice:
        """What the code means and what helps."""
        return ADVICE[self.code]

    def public(self) -> dict[str, object]:
        """The refusal as callers get it: code, message, retry and next steps."""
        return {"code": self.code, "message": self.message, "retry": self.advice.retry, "next": list(self.advice.next)}
