"""What every `Runtime` promises, as tests that a runtime's author can run.

    class TestMyRuntime(RuntimeConformance):
        @asynccontextmanager
        async def serving(self, *agents):
            yield MyRuntime(...)

The methods are coroutines: run them with pytest-asyncio's auto mode, or with the marker of your runner. No
test sleeps; one that waits in vain gives up after `patience` seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, TypeVar

from msgspec.structs import replace

from flyball.core.context import RunContext
from flyball.core.deferred import DeferredToolResult
from flyball.core.errors import (
    AnswerRefused,
    CancelledSignal,
    Deferred,
    EngineError,
    FlyballError,
    LoopMismatch,
    LoopNotFound,
    SignalRefused,
    UserError,
)
from flyball.core.events import (
    Ended,
    Event,
    ModelAnswered,
    Reopened,
    SignalReceived,
    Stage,
    Started,
    ToolReturned,
)
from flyball.core.messages import FinishReason, Message, Retry, Role, ToolCall, user
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import tool_call_answer
from flyball.inference.middleware.kinds import CallNext, DualMiddleware, StreamNext
from flyball.inference.request import Request, Result
from flyball.inference.scripted import FunctionEngine
from flyball.inference.stream import Finish, StreamEvent, TextDelta
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.calls import awaits_approval
from flyball.orchestrate.followed import Recorded
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.recorded import fork, load, pending_approvals
from flyball.orchestrate.runtime import Runtime
from flyball.tool.decorator import tool
from flyball.tool.errors import CallDeferred

T = TypeVar("T")
E = TypeVar("E", bound=FlyballError)


@tool
async def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


@tool(approval=True)
async def pay(pounds: int) -> str:
    """Pay."""
    return f"paid {pounds}"


@tool
async def build(target: str) -> str:
    """Have something built; somebody says later how it went."""
    raise CallDeferred(f"{target} is in the queue")


@tool
async def watch(ctx: RunContext[Any]) -> str:
    """Goes on until it is asked to detach."""
    await ctx.detach.wait()
    return "goes on in the background"


async def _building(request: Request) -> Message | str:
    """Has two things built, and adds; then says what it was told."""
    told = [result.text for message in request.messages for result in message.tool_results]
    return " / ".join(told) if told else _calls([("build", "app"), ("add", ""), ("build", "docs")])


async def _watching(request: Request) -> Message | str:
    """Watches, then says what it was told."""
    told = [result.text for message in request.messages for result in message.tool_results]
    return told[-1] if told else tool_call_answer("watch")


async def _counting(request: Request) -> Message | str:
    """Adds, then says what came of it. What it answers follows from what it is asked, and nothing else."""
    results = [result for message in request.messages for result in message.tool_results]
    return f"It is {results[-1].text}." if results else tool_call_answer("add", {"x": 1, "y": 2})


async def _buying(request: Request) -> Message | str:
    """Pays, then says what it was told."""
    told = [result.text for message in request.messages for result in message.tool_results]
    told += [message.text for message in request.messages[2:] if message.role == "user"]
    return " / ".join(told) if told else tool_call_answer("pay", {"pounds": 4})


async def _writing(request: Request) -> str:
    """Writes, and puts right what it is told."""
    told = [
        part.text for message in request.messages[1:] for part in message.parts if isinstance(part, Retry)
    ]
    return " / ".join(["a draft", *told])


async def _failing(request: Request) -> str:
    """Fails until it is asked by a second attempt."""
    if request.id.split("/")[1] == "1":
        raise EngineError("the line is down", retryable=False)
    return "Back again."


async def _telling(request: Request) -> str:
    """Says what it is told."""
    return request.messages[-1].text


async def _whole(request: Request, call_next: CallNext) -> Result:
    return await call_next(replace(request, messages=(user("whole"),)))


async def _in_pieces(request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
    async for piece in call_next(replace(request, messages=(user("in pieces"),))):
        yield piece


class RuntimeConformance:
    """The promises of `Runtime`. Subclass it, name the subclass `Test…`, and give it `serving`."""

    patience: float = 60.0
    """Seconds after which what should come soon is taken never to come."""

    def serving(self, *agents: Agent[Any, Any]) -> AbstractAsyncContextManager[Runtime]:
        """A fresh runtime for a block, which can carry on loops of these agents."""
        raise NotImplementedError("RuntimeConformance needs serving(), which gives a runtime for some agents")

    def counter(self) -> Agent[Any, str]:
        """An agent that calls a tool and answers."""
        return Agent(FunctionEngine(_counting), tools=[add], name="counter")

    def buyer(self) -> Agent[Any, str]:
        """An agent whose tool call waits for a person."""
        return Agent(FunctionEngine(_buying), tools=[pay], name="buyer")

    def author(self) -> Agent[Any, str]:
        """An agent whose answers wait for a person."""
        return Agent(FunctionEngine(_writing), output_approval=True, name="author")

    def caller(self) -> Agent[Any, str]:
        """An agent whose first attempt fails."""
        return Agent(FunctionEngine(_failing), name="caller")

    def builder(self) -> Agent[Any, str]:
        """An agent that waits for results from outside."""
        return Agent(FunctionEngine(_building), tools=[build, add], name="builder")

    def teller(self) -> Agent[Any, str]:
        """An agent that says how its answer was asked for."""
        return Agent(FunctionEngine(_telling), features=[DualMiddleware(_whole, _in_pieces)], name="teller")

    def watcher(self) -> Agent[Any, str]:
        """An agent whose tool goes on until it is asked to detach."""
        return Agent(FunctionEngine(_watching), tools=[watch], name="watcher")

    # Beginning, and the end

    async def test_a_loop_is_recorded_when_it_is_submitted_and_has_a_result(self) -> None:
        """`submit` gives the id of a loop that is in the journal; `result` waits for its end."""
        agent = self.counter()
        async with self.serving(agent) as runtime:
            loop_id = await self.soon(runtime.submit(agent, "1 + 2?", metadata={"who": "me"}))
            events, _ = await load(runtime.journal, loop_id)
            assert isinstance(events[0], Started)
            assert events[0].metadata == {"who": "me"}
            result = await self.soon(runtime.result(agent, loop_id))
            assert (result.output, result.loop_id) == ("It is 3.", loop_id)
            again = await self.soon(runtime.result(agent, loop_id))
            assert again.messages == result.messages

    async def test_agents_run_stream_and_step_on_it(self) -> None:
        """`run`, `run_stream` and `iter` take it as `runtime=`, and come to the same end."""
        agent = self.counter()
        async with self.serving(agent) as runtime:
            assert (await self.soon(agent.run("1 + 2?", runtime=runtime))).output == "It is 3."
            async with agent.run_stream("1 + 2?", runtime=runtime) as stream:
                assert await self.soon(_joined(stream)) == "It is 3."
            async with agent.iter("1 + 2?", runtime=runtime) as run:
                assert await self.soon(_turns(run)) == [1, 2]

    async def test_only_who_reads_pieces_has_answers_made_in_pieces(self) -> None:
        """Middleware for whole answers is around the calls of `run` and `iter`, the other of `run_stream`."""
        agent = self.teller()
        async with self.serving(agent) as runtime:
            assert (await self.soon(agent.run("How?", runtime=runtime))).output == "whole"
            async with agent.iter("How?", runtime=runtime) as run:
                assert await self.soon(_turns(run)) == [1]
                assert run.result.output == "whole"
            async with agent.run_stream("How?", runtime=runtime) as stream:
                assert await self.soon(_joined(stream)) == "in pieces"

    async def test_a_failure_is_raised_whichever_way_a_run_is_read(self) -> None:
        """Who runs, reads a stream or takes steps learns of it without asking for the result."""
        agent = self.caller()
        async with self.serving(agent) as runtime:
            await self.failing(EngineError, agent.run("Hello?", runtime=runtime))
            async with agent.run_stream("Hello?", runtime=runtime) as stream:
                await self.failing(EngineError, _joined(stream))
            async with agent.iter("Hello?", runtime=runtime) as run:
                error = await self.failing(EngineError, _turns(run))
            assert error.partial.messages == run.messages

    async def test_the_same_id_is_the_same_loop(self) -> None:
        """A loop that is there is joined, also while it goes on; another prompt is refused."""
        agent = self.buyer()
        async with self.serving(agent) as runtime:
            for _ in range(3):
                assert await self.soon(runtime.submit(agent, "Tea.", loop_id="one")) == "one"
            await self.failing(LoopMismatch, runtime.submit(agent, "Coffee.", loop_id="one"))
            await self.waiting(runtime, "one")
            await self.soon(runtime.signal("one", "approve"))
            assert (await self.soon(runtime.result(agent, "one"))).output == "paid 4"
            await self.soon(runtime.submit(agent, "Tea.", loop_id="one"))
            events = await runtime.journal.read("one")
            assert sum(isinstance(event, Ended) for event in events) == 1

    async def test_submitting_at_once_begins_one_loop(self) -> None:
        """Who submits the same loop many times at once has it once."""
        agent = self.counter()
        async with self.serving(agent) as runtime:
            asked = [runtime.submit(agent, "1 + 2?", loop_id="one") for _ in range(5)]
            assert set(await self.soon(asyncio.gather(*asked))) == {"one"}
            assert (await self.soon(runtime.result(agent, "one"))).output == "It is 3."
            events = await runtime.journal.read("one")
            assert sum(isinstance(event, ModelAnswered) for event in events) == 2

    async def test_many_loops_go_on_beside_each_other(self) -> None:
        """None waits for another, and none gets what is another's."""
        agent = self.counter()
        async with self.serving(agent) as runtime:
            ids = await self.soon(asyncio.gather(*[runtime.submit(agent, f"{n}?") for n in range(20)]))
            results = await self.soon(asyncio.gather(*[runtime.result(agent, one) for one in ids]))
            assert [result.messages[0].text for result in results] == [f"{n}?" for n in range(20)]

    async def test_a_loop_goes_on_when_who_waits_for_it_goes_away(self) -> None:
        """Cancelling a wait is no signal."""
        agent = self.buyer()
        async with self.serving(agent) as runtime:
            await self.soon(runtime.submit(agent, "Tea.", loop_id="one"))
            waits = [asyncio.ensure_future(runtime.result(agent, "one"))]
            waits.append(asyncio.ensure_future(agent.run("Tea.", runtime=runtime, loop_id="one")))
            await self.waiting(runtime, "one")
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
            await self.soon(runtime.signal("one", "approve"))
            assert (await self.soon(runtime.result(agent, "one"))).output == "paid 4"

    async def test_what_is_asked_for_elsewhere_is_refused(self) -> None:
        """Another runtime or another journal cannot be had here, nor an option that there is none of."""
        agent = self.counter()
        async with self.serving(agent) as runtime:
            await self.failing(UserError, runtime.submit(agent, "hi", runtime=runtime))
            await self.failing(UserError, runtime.submit(agent, "hi", journal=MemoryJournal()))
            await self.failing(UserError, agent.run("hi", runtime=runtime, journal=MemoryJournal()))
            other: dict[str, Any] = {"flavour": "sweet"}
            await self.failing(UserError, runtime.submit(agent, "hi", **other))
            await self.failing(UserError, runtime.submit(agent))
            assert await runtime.journal.loops() == []

    async def test_a_loop_that_is_not_there(self) -> None:
        """It has no result, and nobody can speak to it."""
        agent = self.counter()
        async with self.serving(agent) as runtime:
            await self.failing(LoopNotFound, runtime.result(agent, "nobody"))
            await self.failing(LoopNotFound, runtime.signal("nobody", "cancel"))

    # Following

    async def test_events_come_once_in_order_and_pieces_before_their_answer(self) -> None:
        """From the first event to the last, and the whole text of each answer on the way."""
        agent = self.counter()
        async with self.serving(agent) as runtime:
            following = asyncio.ensure_future(self.told(runtime, "one"))
            await self.soon(runtime.submit(agent, "1 + 2?", loop_id="one"))
            told = await self.soon(following)
            events = await runtime.journal.read("one")
            assert [one for one in told if isinstance(one, Recorded)] == _numbered(events)
            assert isinstance(events[-1], Ended)
            text = ""
            for one in told:
                if isinstance(one, TextDelta):
                    text += one.text
                elif isinstance(one, Recorded) and isinstance(one.event, ModelAnswered):
                    assert text == one.event.message.text
                    text = ""
            for number, one in enumerate(told):
                if isinstance(one, Recorded) and isinstance(one.event, ModelAnswered):
                    assert isinstance(told[number - 1], Finish)

    async def test_following_goes_on_from_any_number(self) -> None:
        """Who has seen so many events is told the others, and only the pieces of answers among them."""
        agent = self.counter()
        async with self.serving(agent) as runtime:
            await self.soon(runtime.submit(agent, "1 + 2?", loop_id="one"))
            await self.soon(runtime.result(agent, "one"))
            events = await runtime.journal.read("one")
            for after in range(len(events) + 2):
                told = await self.soon(self.told(runtime, "one", after))
                assert [one for one in told if isinstance(one, Recorded)] == _numbered(events)[after:]
                answers = [one for one in events[max(after, 1) :] if isinstance(one, ModelAnswered)]
                assert sum(isinstance(one, Finish) for one in told) == len(answers)

    async def test_following_can_be_left_and_taken_up_again(self) -> None:
        """By the last number that was seen, while the loop goes on."""
        agent = self.buyer()
        async with self.serving(agent) as runtime:
            await self.soon(runtime.submit(agent, "Tea.", loop_id="one"))
            seen: list[Recorded] = []
            async with aclosing(runtime.follow("one")) as course:
                async for one in course:
                    if isinstance(one, Recorded):
                        seen.append(one)
                        if isinstance(one.event, ModelAnswered):
                            break
            await self.waiting(runtime, "one")
            await self.soon(runtime.signal("one", "approve"))
            rest = await self.soon(self.told(runtime, "one", seen[-1].number))
            seen += [one for one in rest if isinstance(one, Recorded)]
            assert seen == _numbered(await runtime.journal.read("one"))

    # Signals

    async def test_what_does_not_fit_is_refused_and_says_what_does(self) -> None:
        """Also after the end; and nothing of it is recorded."""
        agent = self.buyer()
        async with self.serving(agent) as runtime:
            await self.soon(runtime.submit(agent, "Tea.", loop_id="one"))
            await self.waiting(runtime, "one")
            length = len(await runtime.journal.read("one"))
            error = await self.failing(SignalRefused, runtime.signal("one", "resume"))
            assert error.details["fits"] == ["cancel", "pause", "approve", "reject", "feedback"]
            await self.failing(SignalRefused, runtime.signal("one", "approve", call_id="another"))
            await self.failing(UserError, runtime.signal("one", "explode"))
            assert len(await runtime.journal.read("one")) == length
            await self.soon(runtime.signal("one", "approve"))
            await self.soon(runtime.result(agent, "one"))
            error = await self.failing(SignalRefused, runtime.signal("one", SignalType.CANCEL))
            assert (error.details["stage"], error.details["fits"]) == ("complete", [])

    async def test_a_signal_that_is_sent_twice_is_taken_once(self) -> None:
        """By its id, also when the loop has gone on, or is over."""
        agent = self.buyer()
        async with self.serving(agent) as runtime:
            await self.soon(runtime.submit(agent, "Tea.", loop_id="one"))
            await self.waiting(runtime, "one")
            approve = Signal(SignalType.APPROVE, id="click", by="ann")
            await self.soon(runtime.signal("one", approve))
            await self.soon(runtime.signal("one", approve))
            await self.soon(runtime.result(agent, "one"))
            assert await self.soon(runtime.signal("one", approve)) is Stage.COMPLETE
            _, state = await load(runtime.journal, "one")
            assert state.signals == ("click",)

    async def test_the_id_of_another_signal_is_refused(self) -> None:
        """Nobody is told that theirs was taken, where what is recorded under its id is another's."""
        agent = self.buyer()
        async with self.serving(agent) as runtime:
            await self.soon(runtime.submit(agent, "Tea.", loop_id="one"))
            await self.waiting(runtime, "one")
            hint = Signal(SignalType.FEEDBACK, id="click", by="ann", text="Be quick.")
            await self.soon(runtime.signal("one", hint))
            for other in (replace(hint, by="ben"), Signal(SignalType.APPROVE, id="click", by="ann")):
                error = await self.failing(SignalRefused, runtime.signal("one", other))
                assert error.details["id"] == "click"
            await self.soon(runtime.signal("one", hint))
            _, state = await load(runtime.journal, "one")
            assert state.at == "execute", "it waits still"

    async def test_pause_resume_feedback_and_reject(self) -> None:
        """A loop that waits can be paused; what is said to it, the model reads."""
        agent = self.buyer()
        async with self.serving(agent) as runtime:
            await self.soon(runtime.submit(agent, "Tea.", loop_id="one"))
            await self.waiting(runtime, "one")
            assert await self.soon(runtime.signal("one", "pause", by="ann")) is Stage.PAUSED
            await self.soon(runtime.signal("one", "feedback", "hurry"))
            assert await self.soon(runtime.signal("one", "resume")) is Stage.AWAITING_APPROVAL
            (waiting,) = await pending_approvals(runtime.journal, "one")
            await self.soon(runtime.signal("one", "reject", "too dear", waiting.id, by="ann"))
            result = await self.soon(runtime.result(agent, "one"))
            assert result.output == "The call was not allowed: too dear / hurry"

    async def test_an_answer_waits_until_it_is_approved(self) -> None:
        """Refused, the model reads why; who is late approves no other answer; approved once, it counts."""
        agent = self.author()
        async with self.serving(agent) as runtime:
            await self.soon(runtime.submit(agent, "Write.", loop_id="one"))
            await self.waiting(runtime, "one")
            assert await self.soon(runtime.signal("one", "pause", by="ann")) is Stage.PAUSED
            await self.soon(runtime.signal("one", "resume", by="ann"))
            (first,) = await pending_approvals(runtime.journal, "one")
            await self.soon(runtime.signal("one", "reject", "longer", first.id, by="ann"))
            await self.waiting(runtime, "one")
            await self.failing(SignalRefused, runtime.signal("one", "approve", "", first.id, by="ben"))
            (second,) = await pending_approvals(runtime.journal, "one")
            await self.soon(runtime.signal("one", "approve", "", second.id, by="ann"))
            result = await self.soon(runtime.result(agent, "one"))
            assert result.output == "a draft / The answer was not approved: longer"

    async def test_a_loop_is_cancelled(self) -> None:
        """With the reason, and who said so."""
        agent = self.buyer()
        async with self.serving(agent) as runtime:
            await self.soon(runtime.submit(agent, "Tea.", loop_id="one"))
            await self.waiting(runtime, "one")
            assert await self.soon(runtime.signal("one", "cancel", "enough", by="ann")) is Stage.CANCELLED
            error = await self.failing(CancelledSignal, runtime.result(agent, "one"))
            assert str(error) == "cancelled by ann: enough"

    async def test_a_failed_loop_has_another_attempt(self) -> None:
        """`retry` opens it again and it goes on, once if it is sent twice; who follows is told of both."""
        agent = self.caller()
        async with self.serving(agent) as runtime:
            await self.soon(runtime.submit(agent, "Hello?", loop_id="one"))
            await self.failing(EngineError, runtime.result(agent, "one"))
            again = Signal(SignalType.RETRY, id="click", by="ann")
            await self.soon(asyncio.gather(runtime.signal("one", again), runtime.signal("one", again)))
            assert (await self.soon(runtime.result(agent, "one"))).output == "Back again."
            told = await self.soon(self.told(runtime, "one"))
            events = [one.event for one in told if isinstance(one, Recorded)]
            assert events == await runtime.journal.read("one")
            assert [event.id for event in events if isinstance(event, Reopened)] == ["click"]
            await self.failing(SignalRefused, runtime.signal("one", "retry"))

    async def test_a_fork_is_carried_on(self) -> None:
        """`carry_on` has a recorded loop driven that nobody drives; one that is over stays as it is."""
        agent = self.counter()
        async with self.serving(agent) as runtime:
            loop_id = await self.soon(runtime.submit(agent, "one and two"))
            await self.soon(runtime.result(agent, loop_id))
            events, state = await load(runtime.journal, loop_id)
            forked = await fork(runtime.journal, loop_id, 1, state.spec)
            await self.soon(runtime.carry_on(agent.bindings(), forked))
            result = await self.soon(runtime.result(agent, forked))
            assert result.output == "It is 3."
            await self.soon(runtime.carry_on(agent.bindings(), loop_id))  # one that is over stays as it is
            assert await runtime.journal.read(loop_id) == events
            try:
                await runtime.carry_on(agent.bindings(), "nowhere")
            except LoopNotFound:
                return
            raise AssertionError("a loop that is not there was carried on")

    # Results from outside, and detach

    async def test_who_waits_is_told_what_is_deferred_and_the_loop_goes_on_by_its_results(self) -> None:
        """One result may come before the other; a result that is given twice is taken once."""
        agent = self.builder()
        async with self.serving(agent) as runtime:
            await self.soon(runtime.submit(agent, "Build.", loop_id="one"))
            error = await self.failing(Deferred, runtime.result(agent, "one"))
            app, docs = error.requests
            assert (error.loop_id, app.tool_name, app.args_json) == ("one", "build", '{"target":"app"}')
            assert (error.partial.loop_id, error.partial.usage.requests) == ("one", 1)
            green = DeferredToolResult("build", app.tool_call_id, "green")
            assert await self.soon(runtime.answer("one", [green])) is Stage.EXECUTING
            error = await self.failing(Deferred, agent.run("Build.", runtime=runtime, loop_id="one"))
            assert error.requests == (docs,)
            red = DeferredToolResult("build", docs.tool_call_id, {"broken": 2})
            await self.soon(runtime.answer("one", [green, red]))
            await self.soon(runtime.answer("one", [red, green]))
            result = await self.soon(runtime.result(agent, "one"))
            assert result.output == 'green / 3 / {"broken":2}'
            await self.soon(runtime.answer("one", [red]))
            events = await runtime.journal.read("one")
            assert sum(isinstance(event, ToolReturned) for event in events) == 5

    async def test_run_stream_and_iter_are_told_and_take_the_results(self) -> None:
        """Wherever the loop is driven, they stop where it waits, and go on with what they bring."""
        agent = self.builder()
        async with self.serving(agent) as runtime:
            options: dict[str, Any] = {"runtime": runtime, "loop_id": "one"}
            async with agent.run_stream("Build.", **options) as stream:
                error = await self.failing(Deferred, _joined(stream))
            async with agent.iter("Build.", **options) as run:
                again = await self.failing(Deferred, _turns(run))
            assert again.requests == error.requests
            options["deferred_results"] = [
                DeferredToolResult("build", one.tool_call_id, "ok") for one in error.requests
            ]
            await self.failing(LoopMismatch, agent.run("Something else.", **options))
            assert len(await runtime.journal.read("one")) == 5, "nothing was written"
            async with agent.run_stream("Build.", **options) as stream:
                assert await self.soon(_joined(stream)) == "ok / 3 / ok"
            assert (await self.soon(agent.run("Build.", **options))).output == "ok / 3 / ok"

    async def test_results_that_do_not_fit_are_refused_and_nothing_is_written(self) -> None:
        """Of a call that does not wait, of another tool, and another one than it has."""
        agent = self.builder()
        async with self.serving(agent) as runtime:
            await self.failing(LoopNotFound, runtime.answer("nobody", [DeferredToolResult("", "c", "")]))
            await self.soon(runtime.submit(agent, "Build.", loop_id="one"))
            app, docs = (await self.failing(Deferred, runtime.result(agent, "one"))).requests
            good = DeferredToolResult("build", app.tool_call_id, "green")
            length = len(await runtime.journal.read("one"))
            for bad in (
                DeferredToolResult("build", "another", "green"),
                DeferredToolResult("add", docs.tool_call_id, "green"),
                DeferredToolResult("build", app.tool_call_id, "red"),
            ):
                error = await self.failing(AnswerRefused, runtime.answer("one", [good, bad]))
                assert error.code == "ORCHESTRATION_ANSWER_REFUSED"
            await self.failing(
                UserError, runtime.answer("one", [good, DeferredToolResult("", docs.tool_call_id, object())])
            )
            assert len(await runtime.journal.read("one")) == length
            await self.soon(runtime.answer("one", [good]))
            other = DeferredToolResult("build", app.tool_call_id, "red")
            error = await self.failing(AnswerRefused, runtime.answer("one", [other]))
            assert error.details["waiting"] == [docs.tool_call_id]

    async def test_a_loop_that_waits_for_results_can_be_paused_and_cancelled(self) -> None:
        """Who follows is told of it all; what never came is answered in the history."""
        agent = self.builder()
        async with self.serving(agent) as runtime:
            following = asyncio.ensure_future(self.told(runtime, "one"))
            await self.soon(runtime.submit(agent, "Build.", loop_id="one"))
            app, _ = (await self.failing(Deferred, runtime.result(agent, "one"))).requests
            assert await self.soon(runtime.signal("one", "pause")) is Stage.PAUSED
            await self.soon(runtime.answer("one", [DeferredToolResult("", app.tool_call_id, "green")]))
            assert await self.soon(runtime.signal("one", "resume")) is Stage.EXECUTING
            await self.failing(Deferred, runtime.result(agent, "one"))
            await self.soon(runtime.signal("one", "cancel", "enough", by="ann"))
            error = await self.failing(CancelledSignal, runtime.result(agent, "one"))
            results = error.partial.messages[-1].tool_results
            never = "Not finished: cancelled by ann: enough"
            assert [result.text for result in results] == ["green", "3", never]
            told = await self.soon(following)
            assert [one for one in told if isinstance(one, Recorded)] == _numbered(
                await runtime.journal.read("one")
            )

    async def test_a_running_tool_is_asked_to_detach(self) -> None:
        """Once, however often it is said; and only while one runs."""
        agent = self.watcher()
        async with self.serving(agent) as runtime:
            await self.soon(runtime.submit(agent, "Watch.", loop_id="one"))
            await self.running(runtime, "one")
            assert await self.soon(runtime.signal("one", "detach", by="ann")) is Stage.EXECUTING
            result = await self.soon(runtime.result(agent, "one"))
            assert result.output == "goes on in the background"
            error = await self.failing(SignalRefused, runtime.signal("one", "detach"))
            assert error.details["stage"] == "complete"
            events = await runtime.journal.read("one")
            signals = [event.signal.type for event in events if isinstance(event, SignalReceived)]
            assert signals == [SignalType.DETACH]

    # What the tests share

    async def soon(self, coming: Awaitable[T]) -> T:
        """What comes soon, or the test has failed."""
        return await asyncio.wait_for(coming, self.patience)

    async def failing(self, kind: type[E], coming: Awaitable[Any]) -> E:
        """The error that comes soon, which must be of this kind."""
        try:
            await self.soon(coming)
        except kind as error:
            return error
        raise AssertionError(f"{kind.__name__} was not raised")

    async def told(self, runtime: Runtime, loop_id: str, after: int = 0) -> list[Recorded | StreamEvent]:
        """All that who follows is told."""
        return [one async for one in runtime.follow(loop_id, after)]

    async def running(self, runtime: Runtime, loop_id: str) -> None:
        """Wait until a loop's tools run."""
        async with asyncio.timeout(self.patience):
            while True:
                events, state = await load(runtime.journal, loop_id)
                if state.at == "execute":
                    return
                await runtime.journal.wait(loop_id, len(events))

    async def waiting(self, runtime: Runtime, loop_id: str) -> None:
        """Wait until a loop waits for approval."""
        async with asyncio.timeout(self.patience):
            while True:
                events, state = await load(runtime.journal, loop_id)
                if awaits_approval(state):
                    return
                await runtime.journal.wait(loop_id, len(events))


def _calls(named: Sequence[tuple[str, str]]) -> Message:
    """An answer that calls several tools: something is built, or 1 and 2 are added."""
    calls: list[ToolCall] = []
    for number, (name, target) in enumerate(named, 1):
        arguments = f'{{"target":"{target}"}}' if target else '{"x":1,"y":2}'
        calls.append(ToolCall(f"call-{number}", name, arguments))
    return Message(Role.ASSISTANT, tuple(calls), finish_reason=FinishReason.TOOL_CALL)


def _numbered(events: list[Event]) -> list[Recorded]:
    return [Recorded(number, event) for number, event in enumerate(events, 1)]


async def _joined(stream: Any) -> str:
    return "".join([piece async for piece in stream.text()])


async def _turns(run: Any) -> list[int]:
    return [step.turn async for step in run]
