"""Scripts on a connection of their own, over a real Valkey: each call has its own answer, whatever became of the one before."""

import asyncio

import pytest
from redis.exceptions import ResponseError

from tocsin.store.scripts import Script

ECHO = """
if ARGV[1] == 'refuse' then return redis.error_reply('REFUSED as asked') end
if ARGV[1] == 'slow' then for _ = 1, 50000000 do end end
return ARGV[1]
"""


async def test_a_script_that_the_server_does_not_know_any_more_is_told_again(store):
    echo = Script(store, ECHO)
    assert await echo.run([], ["a"]) == b"a"
    await store.script_flush()
    assert await echo.run([], ["b"]) == b"b"


async def test_a_connection_that_the_server_has_closed_is_made_anew(store):
    echo = Script(store, ECHO)
    await echo.run([], ["a"])
    await store.execute_command("CLIENT", "KILL", "TYPE", "normal")
    assert await echo.run([], ["b"]) == b"b"


async def test_an_answer_that_nobody_waited_for_is_not_taken_for_the_next(store):
    echo = Script(store, ECHO)
    await echo.run([], ["a"])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await echo.run([], ["slow"])
    assert await echo.run([], ["b"]) == b"b"


async def test_a_refusal_is_raised_and_the_next_call_is_answered(store):
    echo = Script(store, ECHO)
    with pytest.raises(ResponseError, match="REFUSED"):
        await echo.run([], ["refuse"])
    assert await echo.run([], ["b"]) == b"b"


async def test_calls_at_once_each_get_their_own_answer(store):
    echo = Script(store, ECHO)
    texts = [str(number) for number in range(20)]
    assert await asyncio.gather(*(echo.run([], [text]) for text in texts)) == [text.encode() for text in texts]
