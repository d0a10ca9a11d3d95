"""The picture of the day."""

import msgspec
from fastapi import APIRouter, Response

from tocsin.console.answers import answer, refuse
from tocsin.console.core.day import SLOT_MS
from tocsin.console.store import ConsoleStore
from tocsin.contract.faults import Unavailable
from tocsin.contract.refusals import Code, Refusal
from tocsin.runtime.clock import Clock


def routes(store: ConsoleStore, clock: Clock) -> APIRouter:
    """It only reads."""
    router = APIRouter()

    @router.get("/api/day")
    async def day() -> Response:
        """Samples of the last 24 hours, oldest first. A slot that is missing was seen by no console."""
        now_ms = clock.now_ms()
        try:
            samples = await store.samples(now_ms)
        except Unavailable as error:
            return refuse(Refusal(Code.UNAVAILABLE, str(error)))
        return answer({"now": now_ms, "slot_ms": SLOT_MS, "samples": [msgspec.to_builtins(one) for one in samples]})

    return router
