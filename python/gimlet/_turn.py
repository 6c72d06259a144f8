"""One turn of a run: its events, and what the program asks this process for meanwhile.

Where nothing is awaited, tools, checks and approvals run on the thread that waits for the turn, so a tool may use what
belongs to that thread, such as a database connection or the input of a notebook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncIterator, Awaitable, Callable, Generic, Iterator, TypeVar

from ._result import Ask, Check, Event, Result
from ._schema import from_json, to_json
from ._tool import failure_of
from ._wire import Answered, Asked, Closed, Connection, Message, Told, ended
from .errors import GimletError, Interrupted, Suspended

if TYPE_CHECKING:
    import asyncio

    from ._agent import Plan

T = TypeVar("T")

#: How long a run may take to stop.
PATIENCE = 30.0


class Turn(Generic[T]):
    """What both ways to follow a turn share."""

    def __init__(self, connection: Connection, plan: Plan, session: str) -> None:
        self.connection = connection
        self.plan = plan
        self.session = session
        self.events: list[Event] = []
        self.result: Result[T] | None = None
        self.is_over = False
        self._last_ask: Ask | None = None

    def submit(self, task: str | None, sink: Callable[[Message], None]) -> None:
        """Sends the task, or carries on with what is left."""
        self.connection.route(self.session, sink)
        if task is None:
            self.connection.request("_gimlet/resume", {"sessionId": self.session}, sink)
        else:
            prompt = [{"type": "text", "text": task}]
            self.connection.request("session/prompt", {"sessionId": self.session, "prompt": prompt}, sink)

    def stop(self) -> None:
        self.connection.notify("session/cancel", {"sessionId": self.session})

    def over(self) -> None:
        if not self.is_over:
            self.is_over = True
            self.connection.leave(self.session)

    def take(self, message: Told) -> Event | None:
        """An event, if the message is one."""
        if message.method != "_gimlet/event":
            return None
        event = Event(message.params["event"])
        self.events.append(event)
        return event

    def ending(self, message: Answered | Closed) -> Result[T]:
        """How the turn ended. What is no result is raised."""
        self.over()
        if isinstance(message, Closed):
            raise self._with_events(ended(message))
        if message.error:
            raise self._with_events(message.error)
        about = message.result["_meta"]["gimlet"]
        suspended = about.get("suspended")
        if suspended is None:
            self.result = Result(about["run"], about["finished"], self.events, self.plan.form)
            return self.result
        if suspended["reason"] == "interrupted":
            raise Interrupted(about["run"])
        if suspended["reason"] == "approval":
            ask = self._last_ask
            what = f"{ask.name} waits for an approval: {ask.reason}" if ask else "an approval is needed"
            raise self._with_events(Suspended(what, run=about["run"], ask=ask))
        raise self._with_events(GimletError(suspended.get("message", ""), error="DIVERGED", run=about["run"]))

    def _with_events(self, error: GimletError) -> GimletError:
        error.run = error.run or (self.events[0].run if self.events else None)
        error.events = self.events
        return error

    def work_of(self, message: Asked) -> Callable[[], Any]:
        """What the program asks for, as something to call. It may return an awaitable of the answer's value."""
        params = message.params
        if message.method == "_gimlet/tool":
            tool = self.plan.tools[params["name"]]
            return lambda: tool.invoke(params["args"])
        if message.method == "_gimlet/check":
            check = self.plan.checks[params["index"]]
            answer = self._checked(params["answer"])
            return lambda: check(answer, Check(params))
        if message.method == "session/request_permission":
            ask = Ask(params["_meta"]["gimlet"]["approval"], self.plan.servers)
            self._last_ask = ask
            approve = self.plan.approve
            if approve is not None:
                return lambda: approve(ask)
        raise LookupError(f"nobody here answers {message.method}")

    def _checked(self, answer: str) -> Any:
        """The answer as a check sees it: of the type that was asked for, if it has its form."""
        if self.plan.form is None:
            return answer
        import json

        for read in (lambda: json.loads(answer), lambda: answer):
            try:
                return from_json(read(), self.plan.form)
            except (ValueError, TypeError):
                continue
        return answer

    def answer(self, message: Asked, value: Any) -> None:
        """Sends what a function returned."""
        if message.method == "_gimlet/tool":
            self.connection.answer(message.id, {"value": to_json(value)})
        elif message.method == "_gimlet/check":
            check = self.plan.checks[message.params["index"]]
            self.connection.answer(message.id, {"problem": _problem(check, value)})
        else:
            self.connection.answer(message.id, _decision(value))

    def failed(self, message: Asked, error: BaseException) -> None:
        """Sends that a function raised."""
        if message.method == "_gimlet/tool":
            self.connection.answer(message.id, {"error": failure_of(error)})
        elif message.method == "_gimlet/check":
            problem = str(error) if isinstance(error, AssertionError) and str(error) else f"{type(error).__name__}: {error}"
            self.connection.answer(message.id, {"problem": problem})
        elif isinstance(error, LookupError):
            self.connection.refuse(message.id, str(error))
        else:
            # Whoever cannot say yes has not said yes.
            self.connection.answer(message.id, _decision(f"the approval failed: {type(error).__name__}: {error}"))


def _problem(check: Any, value: Any) -> str | None:
    if value is None or value is True:
        return None
    if isinstance(value, str):
        return value or None
    if value:
        return None
    name = getattr(check, "__name__", "check")
    words = (getattr(check, "__doc__", None) or "").strip() if name != "<lambda>" else ""
    return words or f"the answer does not pass the check `{name}`"


def _decision(value: Any) -> dict[str, Any]:
    """`True` and `once` agree to the call, `session` to all like it; a text denies and is read by the model."""
    chosen = {True: "allow_once", "once": "allow_once", "session": "allow_always"}.get(value, "reject_once")
    answer: dict[str, Any] = {"outcome": {"outcome": "selected", "optionId": chosen}}
    if chosen == "reject_once" and isinstance(value, str):
        answer["_meta"] = {"gimlet": {"feedback": value}}
    return answer


class Stream(Generic[T]):
    """The events of a turn, as they happen. Leaving the loop stops the run. `result` is there after the last event."""

    def __init__(self, turn: Turn[T], task: str | None) -> None:
        import queue

        self._turn = turn
        self._queue: queue.SimpleQueue[Message] = queue.SimpleQueue()
        turn.submit(task, self._queue.put)

    @property
    def run(self) -> str:
        """The run's id."""
        return self._turn.session

    @property
    def result(self) -> Result[T]:
        """How the turn ended; what is left of it is followed first."""
        try:
            for _ in self:
                pass
        except Interrupted:
            raise
        except KeyboardInterrupt:
            self._interrupted()
        if self._turn.result is None:
            raise GimletError("the run was stopped and has no result", run=self.run)
        return self._turn.result

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        try:
            while not self._turn.is_over:
                message = self._queue.get()
                if isinstance(message, Told):
                    event = self._turn.take(message)
                    if event is not None:
                        return event
                elif isinstance(message, Asked):
                    self._perform(message)
                else:
                    self._turn.ending(message)
        except Interrupted:
            raise
        except KeyboardInterrupt:
            self._interrupted()
        raise StopIteration

    def _perform(self, message: Asked) -> None:
        turn = self._turn
        try:
            value = turn.work_of(message)()
            if hasattr(value, "__await__"):
                value = _run_awaitable(value)
            turn.answer(message, value)
        except KeyboardInterrupt:
            turn.failed(message, InterruptedError("stopped by the user"))
            raise
        except Exception as error:
            turn.failed(message, error)

    def _interrupted(self) -> None:
        """Ctrl-C: the run stops, and this process goes on. A second Ctrl-C does not wait for it."""
        self.close()
        raise Interrupted(self._turn.session) from None

    def close(self) -> None:
        """Stops the run and waits until it has stopped. It can be resumed."""
        import queue
        import time

        turn = self._turn
        if turn.is_over:
            return
        turn.stop()
        patience = time.monotonic() + PATIENCE
        try:
            while not turn.is_over:
                try:
                    message = self._queue.get(timeout=max(0.0, patience - time.monotonic()))
                except queue.Empty:
                    turn.connection.kill()
                    patience = time.monotonic() + PATIENCE
                    continue
                if isinstance(message, Told):
                    turn.take(message)
                elif isinstance(message, Asked):
                    turn.connection.refuse(message.id, "the program was stopped")
                else:
                    turn.ending(message)
        except (GimletError, Interrupted):
            pass
        finally:
            turn.over()

    def __enter__(self) -> Stream[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        turn = getattr(self, "_turn", None)
        if turn is not None and not turn.is_over:
            turn.stop()
            turn.over()


def _run_awaitable(value: Awaitable[Any]) -> Any:
    """What an async tool returns, where the caller awaits nothing: in a loop of its own, on a thread of its own if this
    thread has a running loop, as in a notebook."""
    import asyncio

    async def wait() -> Any:
        return await value

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    import concurrent.futures
    import contextvars

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(contextvars.copy_context().run, asyncio.run, wait()).result()


class AsyncStream(Generic[T]):
    """The events of a turn, for `async for`. Async tools run on the loop, other tools on threads beside it."""

    def __init__(self, begin: Callable[[], Turn[T]], task: str | None) -> None:
        self._begin = begin
        self._task = task
        self._turn: Turn[T] | None = None
        self._queue: asyncio.Queue[Message]
        self._working: set[asyncio.Task[None]] = set()

    @property
    def result(self) -> Result[T]:
        """How the turn ended, once it has."""
        if self._turn is None or self._turn.result is None:
            raise GimletError("the run has no result yet")
        return self._turn.result

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def _begun(self) -> Turn[T]:
        import asyncio

        if self._turn is None:
            loop = asyncio.get_running_loop()
            self._queue = asyncio.Queue()
            self._turn = await asyncio.to_thread(self._begin)

            def sink(message: Message) -> None:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(self._queue.put_nowait, message)

            self._turn.submit(self._task, sink)
        return self._turn

    async def __anext__(self) -> Event:
        import asyncio

        turn = await self._begun()
        try:
            while not turn.is_over:
                message = await self._queue.get()
                if isinstance(message, Told):
                    event = turn.take(message)
                    if event is not None:
                        return event
                elif isinstance(message, Asked):
                    work = asyncio.ensure_future(self._perform(turn, message))
                    self._working.add(work)
                    work.add_done_callback(self._working.discard)
                else:
                    turn.ending(message)
        except asyncio.CancelledError:
            await asyncio.shield(self.aclose())
            raise
        raise StopAsyncIteration

    async def _perform(self, turn: Turn[T], message: Asked) -> None:
        import asyncio

        try:
            work = turn.work_of(message)
            function = turn.plan.function_of(message.method, message.params)
            value = work() if _is_async(function) else await asyncio.to_thread(work)
            if hasattr(value, "__await__"):
                value = await value
            turn.answer(message, value)
        except asyncio.CancelledError:
            turn.failed(message, InterruptedError("stopped by the user"))
            raise
        except Exception as error:
            turn.failed(message, error)

    async def aclose(self) -> None:
        """Stops the run and waits until it has stopped. It can be resumed."""
        import asyncio

        turn = self._turn
        if turn is None or turn.is_over:
            return
        for work in list(self._working):
            work.cancel()
        turn.stop()
        try:
            while not turn.is_over:
                message = await asyncio.wait_for(self._queue.get(), PATIENCE)
                if isinstance(message, Told):
                    turn.take(message)
                elif isinstance(message, Asked):
                    turn.connection.refuse(message.id, "the program was stopped")
                else:
                    turn.ending(message)
        except asyncio.TimeoutError:
            turn.connection.kill()
        except (GimletError, Interrupted):
            pass
        finally:
            turn.over()

    async def __aenter__(self) -> AsyncStream[T]:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _is_async(function: Any) -> bool:
    import inspect

    return inspect.iscoroutinefunction(function)
