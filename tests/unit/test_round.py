"""A check that has failed says so once the others have ended, and waits for nobody who will not come."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from components.round import Round


async def _pause() -> None:
    """Lets everything else go on as far as it can."""
    for _ in range(5):
        await asyncio.sleep(0)


def _run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 10))


def test_it_waits_for_those_at_work_however_long_they_take() -> None:
    async def test() -> None:
        checks = Round(["one", "two"], patience=0)
        checks.begins("one")
        checks.begins("two")
        failing = asyncio.create_task(checks.fails("one"))
        await asyncio.sleep(0.05)
        assert not failing.done()
        checks.ends("two")
        assert await failing == []

    _run(test())


def test_two_that_fail_do_not_wait_for_each_other() -> None:
    async def test() -> None:
        checks = Round(["one", "two"], patience=60)
        checks.begins("one")
        checks.begins("two")
        assert await asyncio.gather(checks.fails("one"), checks.fails("two")) == [[], []]
        assert checks.failed == ["one", "two"]

    _run(test())


def test_it_waits_for_those_that_begin_later() -> None:
    async def test() -> None:
        checks = Round(["one", "two", "three"], patience=60)
        checks.begins("one")
        failing = asyncio.create_task(checks.fails("one"))
        for name in ("two", "three"):
            await _pause()
            assert not failing.done()
            checks.begins(name)
            await _pause()
            assert not failing.done()
            checks.ends(name)
        assert await failing == []

    _run(test())


def test_one_that_need_not_be_made_is_not_waited_for() -> None:
    async def test() -> None:
        checks = Round(["one", "unchanged"], patience=60)
        checks.begins("one")
        checks.ends("unchanged")
        assert await checks.fails("one") == []

    _run(test())


def test_those_that_do_not_begin_are_named() -> None:
    async def test() -> None:
        checks = Round(["one", "two", "three", "four"], patience=0.05)
        checks.begins("one")
        checks.begins("three")
        told = await asyncio.gather(checks.fails("one"), checks.fails("three"))
        assert told == [["four", "two"], ["four", "two"]]

    _run(test())
