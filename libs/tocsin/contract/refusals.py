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
    FOREIGN_INSTANCE = "foreign_instance"
    UNAVAILABLE = "unavailable"
    NO_LIST = "no_list"
    BROKEN_SETTINGS = "broken_settings"
    CHANGED_MEANWHILE = "changed_meanwhile"
    NOT_FOUND = "not_found"


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
    Code.FOREIGN_INSTANCE: Advice(
        "the credential is another instance's", Retry.AFTER_CHANGE, 401, ("tocsin hooks status", "tocsin doctor")
    ),
    Code.UNAVAILABLE: Advice("the store or the bus does not answer", Retry.SAME_REQUEST, 503, ("tocsin doctor",)),
    Code.NO_LIST: Advice("the bus is there, but nobody publishes this list", Retry.SAME_REQUEST, 503, ("tocsin up", "tocsin doctor")),
    Code.BROKEN_SETTINGS: Advice(
        "a settings file cannot be read; it was left as it is", Retry.AFTER_CHANGE, 422, ("mend the file that the message names",)
    ),
    Code.CHANGED_MEANWHILE: Advice(
        "somebody wrote the file at the same moment; it was left as they wrote it", Retry.SAME_REQUEST, 409, ("run the command again",)
    ),
    Code.NOT_FOUND: Advice("nothing of that name", Retry.AFTER_CHANGE, 404, ("tocsin ls",)),
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
