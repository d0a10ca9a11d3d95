"""How the person is told: whether it works, and a test of it."""

from fastapi import APIRouter, Response

from tocsin.console.answers import answer, refuse
from tocsin.console.core.quiet import is_quiet
from tocsin.console.notifier import Notifier
from tocsin.contract.faults import Unavailable
from tocsin.contract.refusals import Code, Refusal
from tocsin.runtime.clock import Clock


def routes(notifier: Notifier, clock: Clock) -> APIRouter:
    """Of the webhook only its host is told."""
    router = APIRouter()

    @router.get("/api/notify")
    async def look() -> Response:
        """Whether there is a webhook and what became of the last notice, whether it is quiet, and how many notices wait."""
        webhook, now_ms = notifier.ways.webhook, clock.now_ms()
        try:
            outcome, waiting = await notifier.outcome(), await notifier.waiting()
        except Unavailable as error:
            return refuse(Refusal(Code.UNAVAILABLE, str(error)))
        told = {
            "host": webhook.host, "is_open": webhook.is_open, "sent_ms": outcome.sent_ms, "failed_ms": outcome.failed_ms,
            "failed_last": outcome.failed_last, "error": outcome.error,
        } if webhook is not None else None  # fmt: skip
        quiet = notifier.ways.quiet
        return answer(
            {"now": now_ms, "webhook": told, "quiet_hours": [str(span) for span in quiet],
             "is_quiet": is_quiet(quiet, notifier.ways.minute_of(now_ms)), "waiting": waiting}
        )  # fmt: skip

    @router.post("/api/notify/test")
    async def test() -> Response:
        """Tell a notice that tells of nothing, now: to every screen that shows them, and to the webhook, if there is one."""
        try:
            failed = await notifier.test()
        except Unavailable as error:
            return refuse(Refusal(Code.UNAVAILABLE, str(error)))
        webhook = notifier.ways.webhook
        return answer({"webhook": webhook and webhook.host, "failed": str(failed) if failed is not None else None})

    return router
