"""Async use: `arun`, `astream`, async tools, and cancelling."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Callable

import pytest

import gimlet
from gimlet import Agent, tool

Script = Callable[[str], str]
TWO = """
[[reply]]
calls = [{ name = "fetch", args = { word = "a" } }, { name = "fetch", args = { word = "b" } }]
[[reply]]
expect = ["got b"]
text = "Fetched."
"""


def test_async_tools_run_beside_each_other(script: Script) -> None:
    together = {"a": asyncio.Event(), "b": asyncio.Event()}

    @tool(reads_only=True)
    async def fetch(word: str) -> str:
        """Fetches."""
        together[word].set()
        other = "b" if word == "a" else "a"
        await asyncio.wait_for(together[other].wait(), 60)
        return f"got {word}"

    async def main() -> str:
        agent = Agent(script(TWO), tools=[fetch])
        events = [event.type async for event in agent.astream("fetch both")]
        assert events[-1] == "run.finished"
        return str(await agent.arun("fetch both"))

    assert asyncio.run(main()) == "Fetched."


def test_sync_tools_leave_the_loop_alone(script: Script) -> None:
    threads: list[Any] = []

    @tool(reads_only=True)
    def fetch(word: str) -> str:
        """Fetches."""
        threads.append(threading.current_thread())
        return f"got {word}"

    async def main() -> str:
        return str(await Agent(script(TWO), tools=[fetch]).arun("fetch both"))

    assert asyncio.run(main()) == "Fetched."
    assert threading.main_thread() not in threads


def test_sync_use_inside_a_running_loop_as_in_a_notebook(script: Script) -> None:
    @tool(reads_only=True)
    async def fetch(word: str) -> str:
        """Fetches."""
        await asyncio.sleep(0)
        return f"got {word}"

    async def main() -> str:
        return str(Agent(script(TWO), tools=[fetch]).run("fetch both"))

    assert asyncio.run(main()) == "Fetched."


def test_cancelling_the_task_stops_the_run(script: Script) -> None:
    begun = threading.Event()

    @tool(reads_only=True)
    async def fetch(word: str) -> str:
        """Fetches."""
        begun.set()
        await asyncio.sleep(600)
        return word

    async def main() -> None:
        agent = Agent(script(TWO), tools=[fetch])
        work = asyncio.ensure_future(agent.arun("fetch both"))
        await asyncio.to_thread(begun.wait, 60)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(main())


def test_errors_come_through_await(script: Script) -> None:
    async def main() -> None:
        with pytest.raises(gimlet.UsageError):
            await Agent("nobody/knows").arun("hi")

    asyncio.run(main())
