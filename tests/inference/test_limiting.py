"""An endpoint's limit: never more than it allows, in order, and nobody is forgotten. No test sleeps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import Agent
from flyball.core.errors import EngineError, UnknownModel, UserError
from flyball.core.messages import Message, user
from flyball.core.usage import Usage
from flyball.inference.engine import Engine
from flyball.inference.gate import Gate
from flyball.inference.limiting import LimitedEngine, behind, limited
from flyball.inference.profile import Profile, profile_for
from flyball.inference.rendered import Prompt, Renders
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.scripted import FunctionEngine, ScriptedEngine
from flyball.inference.stream import StreamEvent, collect
from flyball.inference.window import WINDOW, Limit
from flyball.testing import FakeClock
from flyball.testing.conformance import EngineConformance
from tests.inference.wrapped import Model, settled
from tests.patience import PATIENCE

REQUEST = Request((user("hello"),))


class Held:
    """Calls through a gate that end when they are told to; writes down when each began."""

    def __init__(self, limit: Limit) -> None:
        self.clock = FakeClock()
        self.gate = Gate(limit, self.clock)
        self.began: list[tuple[int, float]] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.ends: list[asyncio.Event] = []
        self.inside: list[int] = []
        self.tokens: list[int] = []
        """Of each call: those expected, and in the end those used."""

    def call(self, tokens: int = 0, used: int | None = None) -> None:
        number = len(self.tasks)
        self.ends.append(asyncio.Event())
        self.tokens.append(tokens)
        self.tasks.append(asyncio.ensure_future(self._call(number, tokens, used)))

    async def _call(self, number: int, tokens: int, used: int | None) -> None:
        async with self.gate.call(tokens) as call:
            self.began.append((number, self.clock.now()))
            self.inside.append(number)
            try:
                await self.ends[number].wait()
                if used is not None:
                    self.tokens[number] = used
                    call.used(Usage(used))
            finally:
                self.inside.remove(number)

    async def cancel_all(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def test_no_more_are_under_way_than_may_be() -> None:
    held = Held(Limit(max_concurrent=2))
    for _ in range(4):
        held.call()
    await settled()
    assert (held.inside, held.gate.inside, held.gate.waiting) == ([0, 1], 2, 2)
    held.ends[1].set()
    await settled()
    assert held.inside == [0, 2]
    await held.cancel_all()
    assert (held.gate.inside, held.gate.waiting) == (0, 0)


async def test_no_more_begin_in_a_minute_than_may() -> None:
    held = Held(Limit(requests_per_minute=2))
    for end in range(5):
        held.call()
        held.ends[end].set()
    await settled()
    assert len(held.began) == 2
    await held.clock.advance(59.9)
    await settled()
    assert len(held.began) == 2
    await held.clock.advance(0.1)
    await settled()
    assert [number for number, _ in held.began] == [0, 1, 2, 3]
    await held.clock.advance(WINDOW)
    await settled()
    start = held.began[0][1]
    assert [at - start for _, at in held.began] == [0, 0, 60, 60, 120]


async def test_a_minute_slides() -> None:
    held = Held(Limit(requests_per_minute=2))
    for advance in (0.0, 40.0, 0.0):
        await held.clock.advance(advance)
        held.call()
        await settled()
    await held.clock.advance(20.0)
    await settled()
    held.call()
    await settled()
    start = held.began[0][1]
    assert [at - start for _, at in held.began] == [0, 40, 60]
    await held.clock.advance(40.0)
    await settled()
    assert held.began[-1] == (3, start + 100)
    await held.cancel_all()


async def test_a_call_counts_from_when_it_began_and_not_from_when_it_was_let_in() -> None:
    held = Held(Limit(requests_per_minute=1, max_concurrent=1))
    clock = held.clock
    held.call()
    held.call()
    await settled()
    held.ends[0].set()
    await settled()
    # The loop is busy for a second between letting it in and its beginning.
    advancing = asyncio.ensure_future(clock.advance(WINDOW))
    while not held.gate.inside:
        await asyncio.sleep(0)
        if held.gate.inside:
            clock._now += 1.0  # pyright: ignore[reportPrivateUsage]
    await advancing
    await settled()
    held.call()
    held.ends[1].set()
    await settled()
    (_, second) = held.began[1]
    await clock.advance(second + WINDOW - clock.now() - 0.01)
    await settled()
    assert len(held.began) == 2
    await clock.advance(0.02)
    await settled()
    assert len(held.began) == 3
    assert held.began[2][1] - second >= WINDOW
    await held.cancel_all()


async def test_who_goes_away_while_waiting_leaves_nothing_behind() -> None:
    held = Held(Limit(max_concurrent=1))
    for _ in range(3):
        held.call()
    await settled()
    held.tasks[1].cancel()
    await settled()
    assert held.gate.waiting == 1
    held.ends[0].set()
    await settled()
    assert held.inside == [2]
    await held.cancel_all()


@pytest.mark.parametrize("limit", [Limit(max_concurrent=1), Limit(1, 1)], ids=["concurrent", "both"])
async def test_who_is_called_away_as_it_is_let_in_gives_its_place_to_the_next(limit: Limit) -> None:
    held = Held(limit)
    held.call()
    await settled()
    held.call()
    held.call()
    await settled()
    await held.clock.advance(WINDOW)
    held.ends[0].set()
    while held.gate.inside and held.inside:  # noqa: ASYNC110 - it must be looked at after every turn of the loop
        await asyncio.sleep(0)
    # The first has gone, the second is let in, and has not run yet.
    assert (held.gate.inside, held.inside) == (1, [])
    held.tasks[1].cancel()
    await settled()
    assert held.inside == [2]
    assert [number for number, _ in held.began] == [0, 2]
    await held.cancel_all()


async def test_nobody_jumps_the_line_while_a_timer_is_late() -> None:
    held = Held(Limit(requests_per_minute=1))
    held.call()
    held.call()
    await settled()
    held.clock._now += WINDOW  # pyright: ignore[reportPrivateUsage]
    held.call()
    await settled()
    assert [number for number, _ in held.began] == [0, 1]
    await held.cancel_all()


async def test_without_limits_nobody_waits() -> None:
    held = Held(Limit())
    for _ in range(100):
        held.call()
    await settled()
    assert len(held.inside) == 100
    await held.cancel_all()


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "4"])
@pytest.mark.parametrize("name", ["requests_per_minute", "max_concurrent", "tokens_per_minute"])
def test_a_limit_is_a_whole_number_from_1(name: str, value: object) -> None:
    with pytest.raises(UserError, match=f"{name}={value!r}"):
        limited(ScriptedEngine(), **{name: value})  # pyright: ignore[reportArgumentType]


async def test_no_more_tokens_are_used_in_a_minute_than_may_be() -> None:
    held = Held(Limit(tokens_per_minute=100))
    for tokens in (60, 40, 30, 70):
        held.call(tokens)
    await settled()
    assert [number for number, _ in held.began] == [0, 1]
    await held.clock.advance(WINDOW)
    await settled()
    assert [number for number, _ in held.began] == [0, 1, 2, 3]
    await held.cancel_all()


async def test_what_a_call_used_takes_the_place_of_what_was_expected() -> None:
    held = Held(Limit(tokens_per_minute=100))
    held.call(90, used=20)
    held.call(80)
    held.call(1)
    await settled()
    assert held.inside == [0]
    held.ends[0].set()
    await settled()
    assert held.inside == [1], "the first has used less than was expected of it"
    await held.clock.advance(WINDOW)
    await settled()
    assert held.inside == [1, 2]
    await held.cancel_all()


async def test_a_call_that_used_more_keeps_the_next_waiting() -> None:
    held = Held(Limit(tokens_per_minute=100))
    held.call(10, used=100)
    held.ends[0].set()
    await settled()
    await held.clock.advance(30.0)
    held.call(1)
    await settled()
    assert not held.inside
    await held.clock.advance(30.0)
    await settled()
    assert held.inside == [1]
    await held.cancel_all()


async def test_a_call_larger_than_a_minute_goes_alone() -> None:
    held = Held(Limit(tokens_per_minute=100))
    held.call(1)
    held.call(1000)
    held.call(1)
    await settled()
    assert len(held.began) == 1
    await held.clock.advance(WINDOW)
    await settled()
    assert len(held.began) == 2
    await held.clock.advance(WINDOW)
    await settled()
    assert len(held.began) == 3
    await held.cancel_all()


async def test_who_goes_away_before_it_began_leaves_its_tokens() -> None:
    held = Held(Limit(tokens_per_minute=100))
    held.call(60)
    held.call(60)
    held.call(40)
    await settled()
    held.tasks[1].cancel()
    await settled()
    assert held.inside == [0, 2]
    await held.cancel_all()


async def test_beginnings_have_a_delay_between_them() -> None:
    held = Held(Limit(min_delay=1.5))
    for _ in range(3):
        held.call()
    for _ in range(8):
        await settled()
        await held.clock.advance(0.5)
    start = held.began[0][1]
    assert [at - start for _, at in held.began] == [0, 1.5, 3]
    await held.cancel_all()


@pytest.mark.parametrize("value", [0, -1, 61, True, "4", float("nan")], ids=str)
def test_a_delay_is_of_up_to_a_minute(value: object) -> None:
    with pytest.raises(UserError, match="min_delay="):
        limited(ScriptedEngine(), min_delay=value)  # pyright: ignore[reportArgumentType]


actions = st.one_of(
    st.tuples(st.just("call"), st.integers(0, 150)),
    st.tuples(st.just("end"), st.integers(0, 30)),
    st.tuples(st.just("cancel"), st.integers(0, 30)),
    st.tuples(st.just("advance"), st.integers(1, 70)),
    st.just(("look away", 0)),
)


@given(
    limit=st.builds(
        Limit,
        st.none() | st.integers(1, 4),
        st.none() | st.integers(1, 3),
        st.none() | st.integers(1, 200),
        st.none() | st.sampled_from([1, 7.5, 60]),
    ),
    script=st.lists(actions, max_size=60),
)
async def test_whatever_happens_the_limit_holds_and_nobody_is_forgotten(
    limit: Limit, script: list[tuple[str, int]]
) -> None:
    held = Held(limit)
    for action, number in script:
        if action == "call":
            # Some are said to have used less in the end than was expected of them.
            held.call(number, number // 2 if number % 3 == 0 else None)
        elif action == "end" and number < len(held.ends):
            held.ends[number].set()
        elif action == "cancel" and number < len(held.tasks):
            held.tasks[number].cancel()
        elif action == "advance":
            await held.clock.advance(number)
        else:
            # Only one turn of the loop: what comes next meets things half done.
            await asyncio.sleep(0)
            continue
        if action == "call":
            continue
        await settled()
        _holds(held)
        _is_full_or_nobody_waits(held)
    await settled()
    # In the end everybody who was not called away has had a turn.
    for end in held.ends:
        end.set()
    for _ in held.tasks:
        await held.clock.advance(WINDOW)
        await settled()
    _holds(held)
    assert all(task.done() for task in held.tasks)
    assert (held.gate.inside, held.gate.waiting) == (0, 0)
    began = {number for number, _ in held.began}
    assert all(task.cancelled() or number in began for number, task in enumerate(held.tasks))


def _holds(held: Held) -> None:
    limit = held.gate.limit
    assert len(held.inside) <= (limit.max_concurrent or len(held.tasks))
    numbers = [number for number, _ in held.began]
    assert numbers == sorted(numbers), "somebody who came later began earlier"
    times = [at for _, at in held.began]
    allowed = limit.requests_per_minute
    if allowed is not None:
        assert all(later - earlier >= WINDOW for earlier, later in zip(times, times[allowed:], strict=False))
    if limit.min_delay is not None:
        assert all(later - earlier >= limit.min_delay for earlier, later in pairwise(times))
    if limit.tokens_per_minute is not None:
        for last, (number, at) in enumerate(held.began):
            within = [one for one, earlier in held.began[: last + 1] if earlier + WINDOW > at]
            tokens = [held.tokens[one] for one in within]
            alone = held.tokens[number] == sum(tokens)
            assert sum(tokens) <= limit.tokens_per_minute or alone


def _is_full_or_nobody_waits(held: Held) -> None:
    limit, now = held.gate.limit, held.clock.now()
    recent = sum(at > now - WINDOW for _, at in held.began)
    full = len(held.inside) == limit.max_concurrent or recent == limit.requests_per_minute
    if limit.min_delay is not None and held.began:
        full = full or now - held.began[-1][1] < limit.min_delay
    if limit.tokens_per_minute is not None and held.gate.waiting:
        first = next(n for n, task in enumerate(held.tasks) if not task.done() and n not in dict(held.began))
        there = sum(held.tokens[number] for number, at in held.began if at > now - WINDOW)
        full = full or (there > 0 and there + held.tokens[first] > limit.tokens_per_minute)
    assert full or not held.gate.waiting


# The engine


class TestLimitedEngine(EngineConformance):
    def make_engine(self) -> Engine:
        async def answer(request: Request) -> Message | str:
            return f"You said: {request.messages[-1].text}"

        return limited(FunctionEngine(answer), requests_per_minute=1000, max_concurrent=3)

    def make_stalled_engine(self) -> Engine:
        async def never(_: Request) -> str:
            await asyncio.Event().wait()
            return ""

        return limited(FunctionEngine(never), max_concurrent=1)

    def make_failing_engine(self) -> Engine:
        async def fails(_: Request) -> str:
            raise OSError("no line")

        return limited(FunctionEngine(fails), max_concurrent=1)

    def open_calls(self, engine: Engine) -> int:
        assert isinstance(engine, LimitedEngine)
        return engine.gate.inside


async def test_a_stream_is_under_way_until_it_is_closed() -> None:
    engine = limited(ScriptedEngine("one two", "three", chunk=1), max_concurrent=1)
    stream = engine.stream(REQUEST)
    await anext(stream)
    second = asyncio.ensure_future(engine.infer(REQUEST))
    await settled()
    assert (engine.gate.inside, engine.gate.waiting) == (1, 1)
    await stream.aclose()
    assert (await second).content == "three"
    assert engine.gate.inside == 0


async def test_a_call_that_fails_gives_its_place_back() -> None:
    engine = limited(ScriptedEngine(EngineError("no"), "yes", "done"), max_concurrent=1)
    with pytest.raises(EngineError):
        await engine.infer(REQUEST)
    assert (await collect(engine.stream(REQUEST))).content == "yes"
    assert (await engine.infer(REQUEST)).content == "done"


async def test_agents_on_one_endpoint_share_its_limit() -> None:
    clock, seen = FakeClock(), list[str]()

    async def answer(request: Request) -> str:
        seen.append(request.messages[-1].text)
        return "yes"

    model = limited(FunctionEngine(answer), requests_per_minute=1, clock=clock)
    first, second = Agent(model, name="first"), Agent(model, name="second")
    assert (await first.run("one")).output == "yes"
    running = asyncio.ensure_future(second.run("two"))
    await settled()
    assert seen == ["one"]
    await clock.advance(WINDOW)
    assert (await running).output == "yes"
    assert seen == ["one", "two"]


class _Renderer(ScriptedEngine):
    profile = Profile(grammar=True, context_window=7)
    closed = False

    def rendered(self, request: Request, answer: Message | None) -> tuple[Prompt, ...]:
        return (Prompt("it", ({"role": "user", "content": request.messages[0].text},)),)

    async def aclose(self) -> None:
        self.closed = True


async def test_all_else_is_the_engines_own() -> None:
    plain, renderer = ScriptedEngine(name="clerk", context_window=5), _Renderer()
    assert limited(plain).model_info() == plain.model_info()
    assert profile_for(limited(plain)) == profile_for(plain)
    assert not isinstance(limited(plain), Renders)
    await limited(plain).aclose()
    wrapped = limited(renderer)
    assert profile_for(wrapped) is renderer.profile
    assert isinstance(wrapped, Renders)
    assert wrapped.rendered(REQUEST, None) == renderer.rendered(REQUEST, None)
    await wrapped.aclose()
    assert renderer.closed


async def test_a_model_string_is_looked_up() -> None:
    model = limited("test:hi", max_concurrent=1)
    assert (await model.infer(REQUEST)).content == "hi"
    with pytest.raises(UnknownModel):
        limited("nobody:knows", max_concurrent=1)


async def test_engines_may_stand_behind_one_gate() -> None:
    gate = Gate(Limit(max_concurrent=1))
    began = asyncio.Event()

    class Slow:
        async def infer(self, request: Request) -> Result:
            began.set()
            await asyncio.Event().wait()
            raise AssertionError(request)

        def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
            raise AssertionError(request)

        def model_info(self) -> ModelInfo:
            return ModelInfo("slow")

    first = asyncio.ensure_future(behind(gate, Slow()).infer(REQUEST))
    await began.wait()
    second = asyncio.ensure_future(behind(gate, ScriptedEngine("hi")).infer(REQUEST))
    await settled()
    assert gate.waiting == 1
    first.cancel()
    assert (await second).content == "hi"


async def test_real_time_lets_the_next_one_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flyball.inference.window.WINDOW", 0.01)
    engine = limited(ScriptedEngine("one", "two"), requests_per_minute=1)
    async with asyncio.timeout(PATIENCE):
        assert [(await engine.infer(REQUEST)).content for _ in range(2)] == ["one", "two"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_counts_with_what_is_expected_until_its_usage_comes(stream: bool) -> None:
    clock = FakeClock()
    model = Model(usage=Usage(30, 20))
    engine = limited(model, tokens_per_minute=100, estimate=lambda _: 90, clock=clock)

    async def call() -> Result:
        return await (collect(engine.stream(REQUEST)) if stream else engine.infer(REQUEST))

    calls = [asyncio.ensure_future(call()) for _ in range(2)]
    await settled()
    assert len(model.requests) == 1, "50 were used, and 90 more are expected"
    await clock.advance(WINDOW)
    await asyncio.gather(*calls)
    assert len(model.requests) == 2


async def test_an_answer_that_does_not_say_what_it_used_counts_as_expected() -> None:
    clock, model = FakeClock(), Model()
    engine = limited(model, tokens_per_minute=100, estimate=lambda _: 60, clock=clock)
    await engine.infer(REQUEST)
    second = asyncio.ensure_future(engine.infer(REQUEST))
    await settled()
    assert len(model.requests) == 1
    await clock.advance(WINDOW)
    await second


async def test_nothing_is_estimated_where_no_tokens_are_counted() -> None:
    def never(_: Request) -> int:
        raise AssertionError

    engine = limited(Model(), requests_per_minute=9, estimate=never)
    assert (await engine.infer(REQUEST)).content == "model heard hello"
