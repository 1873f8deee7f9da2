"""An engine with middleware around it is an engine, whatever the middleware does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, cast

import pytest
from msgspec.structs import replace

from flyball.core.around import Around, Sent, noted
from flyball.core.edits import Edit
from flyball.core.errors import (
    EngineError,
    GuardrailError,
    MiddlewareFailed,
    UnexpectedModelBehavior,
    UserError,
)
from flyball.core.messages import Message, Role, Text, assistant, user
from flyball.core.settings import ModelSettings
from flyball.inference.engine import Engine
from flyball.inference.middleware.engine import MiddlewareEngine, around
from flyball.inference.middleware.kinds import (
    CallNext,
    ChangeRequest,
    DualMiddleware,
    Middleware,
    RequestMiddleware,
    StreamMiddleware,
    StreamNext,
)
from flyball.inference.middleware.logs import Logging
from flyball.inference.middleware.max_tokens import MaxTokens
from flyball.inference.middleware.timing import Timing
from flyball.inference.profile import Profile, profile_for
from flyball.inference.rendered import Prompt, Renders
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.scripted import FunctionEngine, ScriptedEngine
from flyball.inference.stream import Finish, StreamEvent, TextDelta, close_stream, collect
from flyball.testing.conformance import EngineConformance
from tests.inference.middleware.sides import (
    REQUEST,
    WAYS,
    Again,
    Canned,
    Raising,
    Saying,
    Twice,
    ask,
    saying,
    through,
)

way_of_asking = pytest.mark.parametrize("way", WAYS)


async def forever() -> None:
    await asyncio.Event().wait()


def echo(request: Request) -> str:
    return " ".join([message.text for message in request.messages])


class Counting(ScriptedEngine):
    """Knows how many of its calls are under way."""

    def __init__(self, *answers: Any, **options: Any) -> None:
        super().__init__(*answers, **options)
        self.open = 0

    async def infer(self, request: Request) -> Result:
        self.open += 1
        try:
            return await super().infer(request)
        finally:
            self.open -= 1

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        self.open += 1
        pieces = super().stream(request)
        try:
            async for piece in pieces:
                yield piece
        finally:
            self.open -= 1
            await close_stream(pieces)


class TestConformance(EngineConformance):
    """With everything around it at once."""

    def around(self, engine: Engine) -> Engine:
        quiet, still = Logging(lambda _: None), Timing(lambda _: None)
        return through(engine, quiet, still, MaxTokens(9), Twice(), Saying("please"))

    def make_engine(self) -> Engine:
        return self.around(Counting(*[echo] * 60, chunk=3))

    def make_stalled_engine(self) -> Engine:
        return self.around(Counting("never", pause=forever))

    def make_failing_engine(self) -> Engine:
        return through(Counting(*[EngineError("busy")] * 4), Raising(ValueError("no")), Twice())

    def open_calls(self, engine: Engine) -> int:
        assert isinstance(engine, MiddlewareEngine)
        assert isinstance(engine.engine, Counting)
        return engine.engine.open


@way_of_asking
async def test_the_first_is_the_outermost(way: str) -> None:
    seen: list[str] = []

    def watching(name: str) -> Middleware:
        async def request(request: Request, call_next: CallNext) -> Result:
            seen.append(f"{name} in")
            result = await call_next(request)
            seen.append(f"{name} out")
            return result

        async def stream(request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
            seen.append(f"{name} in")
            async for piece in call_next(request):
                yield piece
            seen.append(f"{name} out")

        return DualMiddleware(request, stream, name)

    await ask(through(ScriptedEngine("hi"), watching("one"), watching("two")), way)
    assert seen == ["one in", "two in", "two out", "one out"]


@way_of_asking
async def test_who_changes_nothing_leaves_nothing(way: str) -> None:
    engine = ScriptedEngine("hi")
    result = await ask(through(engine, Logging(lambda _: None), Timing(lambda _: None), MaxTokens(5)), way)
    assert result.around is not None
    capped = replace(REQUEST, settings=ModelSettings(max_tokens=5))
    engine.reset()
    result = await ask(through(engine, Logging(lambda _: None), MaxTokens(5)), way, capped)
    assert result.around is None
    assert engine.calls == [capped]
    assert result.content == "hi"


@way_of_asking
async def test_what_was_changed_is_told_with_who_did_it(way: str) -> None:
    engine = ScriptedEngine("hi")
    result = await ask(through(engine, Saying("one", "first"), MaxTokens(7), Saying("two", "second")), way)
    settings = ModelSettings(max_tokens=7)
    said = user([Text("hello"), Text(" one"), Text(" two")])
    assert engine.calls == [Request((said,), settings=settings, id=REQUEST.id)]
    edits = (Edit(0, 1, (said,)),)
    by = ("first", "max_tokens", "second")
    assert result.around == Around((Sent(edits, settings, by=by),), fresh=True)


@way_of_asking
async def test_a_change_back_is_none(way: str) -> None:
    back = ChangeRequest(lambda request: replace(request, messages=REQUEST.messages), "back")
    result = await ask(through(ScriptedEngine("hi"), Saying("oh"), back), way)
    assert result.around is None


@way_of_asking
async def test_the_model_may_be_asked_several_times(way: str) -> None:
    engine = ScriptedEngine("one", "two")
    result = await ask(through(engine, Twice()), way)
    assert result.content == "two"
    assert result.around == Around((Sent(times=2),), fresh=True)

    class Rephrasing(Twice):
        async def request(self, request: Request, call_next: CallNext) -> Result:
            await call_next(saying(request, "a"))
            return await call_next(saying(request, "b"))

        async def stream(self, request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
            await collect(call_next(saying(request, "a")))
            async for piece in call_next(saying(request, "b")):
                yield piece

    engine.reset()
    result = await ask(through(engine, Rephrasing()), way)
    assert result.around == Around(
        tuple(
            [Sent((Edit(0, 1, (user([Text("hello"), Text(f" {text}")]),)),), by=("twice",)) for text in "ab"]
        ),
        fresh=True,
    )
    assert [call.messages[-1].text for call in engine.calls] == ["hello a", "hello b"]


@way_of_asking
async def test_the_model_may_not_be_asked_at_all(way: str) -> None:
    engine = ScriptedEngine()
    result = await ask(through(engine, Twice(), Canned(assistant("cached")), Saying("no")), way)
    assert result.content == "cached"
    assert not engine.calls
    assert result.around == Around(skipped="canned", fresh=True)


@way_of_asking
async def test_an_answer_may_be_changed(way: str) -> None:
    def loud(text: str) -> str:
        return text.upper()

    @RequestMiddleware
    async def shouting(request: Request, call_next: CallNext) -> Result:
        result = await call_next(request)
        return Result(replace(result.message, parts=(Text(loud(result.content)),)), result.request_id)

    @shouting.with_stream
    async def both(request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
        async for piece in call_next(request):
            yield replace(piece, text=loud(piece.text)) if isinstance(piece, TextDelta) else piece

    assert both.name == "shouting"
    result = await ask(through(ScriptedEngine("quiet", chunk=2), both), way)
    assert result.content == "QUIET"
    assert result.around is None


@pytest.mark.parametrize("kind", [RequestMiddleware, StreamMiddleware])
async def test_one_side_alone_is_asked_on_its_side(kind: type[Any]) -> None:
    async def request(request: Request, call_next: CallNext) -> Result:
        return await call_next(saying(request, "said"))

    async def stream(request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
        async for piece in call_next(saying(request, "said")):
            yield piece

    one = kind(request if kind is RequestMiddleware else stream)
    assert (one.has_request, one.has_stream) == (kind is RequestMiddleware, kind is StreamMiddleware)
    engine = ScriptedEngine(echo, echo)
    whole, pieces = [(await ask(through(engine, one), way)).content for way in WAYS]
    assert (whole, pieces) == (
        ("hello said", "hello") if kind is RequestMiddleware else ("hello", "hello said")
    )


async def test_sides_that_are_not_overridden_let_all_pass() -> None:
    """The engine leaves them out; whoever calls them by hand gets what the next one gives."""
    nothing, engine = Middleware(), ScriptedEngine("a", "b")
    assert (await nothing.request(REQUEST, engine.infer)).content == "a"
    pieces = nothing.stream(REQUEST, engine.stream)
    assert isinstance(pieces, AsyncIterator)
    assert (await collect(pieces)).content == "b"
    assert not nothing.has_request
    assert not nothing.has_stream


async def test_a_stream_side_may_also_give_a_stream() -> None:
    def plain(request: Request, call_next: StreamNext) -> AsyncIterator[StreamEvent]:
        return call_next(saying(request, "plain"))

    async def awaited(request: Request, call_next: StreamNext) -> AsyncIterator[StreamEvent]:
        await asyncio.sleep(0)
        return call_next(saying(request, "awaited"))

    engine = through(ScriptedEngine(echo), StreamMiddleware(plain), StreamMiddleware(awaited))
    assert (await ask(engine, "stream")).content == "hello plain awaited"


# Failures


@way_of_asking
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_what_a_middleware_raises_names_it(way: str, *, after: bool) -> None:
    engine = Counting("hi")
    cause = ValueError("oops")
    with pytest.raises(MiddlewareFailed, match="'raising' failed: ValueError: oops") as caught:
        await ask(through(engine, Saying("x"), Raising(cause, after=after), Saying("y")), way)
    assert caught.value.details == {"middleware": "raising"}
    assert caught.value.__cause__ is cause
    assert not caught.value.retryable
    assert engine.open == 0
    done = noted(caught.value)
    assert done is not None
    assert bool(done.sent) is after
    assert done.skipped == ("" if after else "raising")


@way_of_asking
@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        (EngineError("busy"), EngineError, True),
        (UserError("set up wrongly"), UserError, False),
        (GuardrailError("not that"), MiddlewareFailed, False),
        (TimeoutError("too long"), MiddlewareFailed, True),
    ],
    ids=["of an engine", "of the configuration", "of another kind", "a time-out"],
)
async def test_errors_are_what_an_engine_may_raise(
    way: str, error: Exception, kind: type[Exception], *, retryable: bool
) -> None:
    with pytest.raises(kind) as caught:
        await ask(through(ScriptedEngine("hi"), Raising(error)), way)
    assert type(caught.value) is kind
    assert getattr(caught.value, "retryable", None) is retryable


@way_of_asking
async def test_what_the_engine_raises_is_passed_on_as_it_is(way: str) -> None:
    gone = OSError("gone")
    with pytest.raises(OSError, match="gone") as caught:
        await ask(through(ScriptedEngine(gone), Saying("x"), MaxTokens(5)), way)
    assert caught.value is gone
    done = noted(gone)
    assert done is not None
    assert [sent.by for sent in done.sent] == [("saying", "max_tokens")]
    with pytest.raises(OSError, match="gone"):
        await ask(through(ScriptedEngine(gone), Logging(lambda _: None)), way)
    assert noted(gone) is None, "it was sent once, and as it was made"


@way_of_asking
async def test_a_failed_call_may_be_made_again(way: str) -> None:
    engine = ScriptedEngine(OSError("gone"), "back")
    result = await ask(through(engine, Again(), Saying("x")), way)
    assert result.content == "back"
    assert result.around is not None
    assert [sent.times for sent in result.around.sent] == [2]


@way_of_asking
async def test_what_is_no_request_is_not_passed_on(way: str) -> None:
    class Wrong(Middleware):
        name = "wrong"

        async def request(self, request: Request, call_next: CallNext) -> Result:
            return await call_next(cast("Any", "hello"))

        def stream(self, request: Request, call_next: StreamNext) -> AsyncIterator[StreamEvent]:
            return call_next(cast("Any", "hello"))

    with pytest.raises(MiddlewareFailed, match="'wrong' gave a str, not a Request to pass on"):
        await ask(through(ScriptedEngine(), Wrong()), way)


@way_of_asking
async def test_what_is_no_answer_is_refused(way: str) -> None:
    class Wrong(Middleware):
        name = "wrong"

        async def request(self, request: Request, call_next: CallNext) -> Result:
            return cast("Any", "hi")

        async def stream(self, request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
            yield cast("Any", "hi")

    with pytest.raises(MiddlewareFailed, match="'wrong' gave a str, not a"):
        await ask(through(ScriptedEngine(), Wrong()), way)


async def test_a_stream_side_that_gives_no_stream() -> None:
    @StreamMiddleware
    async def nothing(request: Request, call_next: StreamNext) -> Any:
        return None

    with pytest.raises(MiddlewareFailed, match="'nothing' gave a NoneType, not the pieces of an answer"):
        await ask(through(ScriptedEngine(), nothing), "stream")


@way_of_asking
@pytest.mark.parametrize(
    "change",
    [
        {"settings": ModelSettings(options={"a": object()})},
        {"settings": ModelSettings(max_tokens=cast("Any", "many"))},
        {"messages": (cast("Any", "hello"),)},
        {"messages": (Message(Role.USER, (Text("\ud800"),)),)},
        {"grammar": 7},
        {"output": object()},
    ],
    ids=["an object", "a wrong type", "no message", "half a character", "no grammar", "no output"],
)
async def test_a_request_that_cannot_be_recorded_is_not_sent(way: str, change: dict[str, Any]) -> None:
    engine = ScriptedEngine()
    odd = ChangeRequest(lambda request: replace(request, **change), "odd")
    with pytest.raises(MiddlewareFailed, match="'odd' made a request that cannot be recorded"):
        await ask(through(engine, odd, Saying("x")), way)
    assert not engine.calls


async def test_a_stream_without_its_end_is_cut_off() -> None:
    @StreamMiddleware
    async def cut(request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
        async for piece in call_next(request):
            if not isinstance(piece, Finish):
                yield piece

    with pytest.raises(UnexpectedModelBehavior, match="without a Finish"):
        await ask(through(ScriptedEngine("hi"), cut), "stream")


# Closing


async def test_what_a_middleware_leaves_open_is_closed() -> None:
    left: list[AsyncIterator[StreamEvent]] = []

    @StreamMiddleware
    async def leaving(request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
        pieces = call_next(request)
        left.append(pieces)
        yield await anext(pieces)
        yield Finish()

    engine = Counting("a long answer", chunk=2)
    assert (await ask(through(engine, leaving), "stream")).content == "a "
    assert engine.open == 0
    assert [piece async for piece in left[0]] == []


async def test_closing_early_closes_all() -> None:
    engine = Counting("a long answer", chunk=2)
    pieces = through(engine, Saying("x"), Timing(lambda _: None), Logging(lambda _: None)).stream(REQUEST)
    await anext(pieces)
    assert engine.open == 1
    await pieces.aclose()
    assert engine.open == 0


async def test_a_middleware_that_cannot_be_closed_changes_nothing() -> None:
    @StreamMiddleware
    async def stubborn(request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
        try:
            async for piece in call_next(request):
                yield piece
        finally:
            raise RuntimeError("not now")

    engine = Counting("a long answer", chunk=2)
    pieces = through(engine, Saying("x"), stubborn).stream(REQUEST)
    await anext(pieces)
    await pieces.aclose()
    assert engine.open == 0


@way_of_asking
async def test_cancelling_passes_through(way: str) -> None:
    seen: list[str] = []

    class Careful(Saying):
        async def request(self, request: Request, call_next: CallNext) -> Result:
            try:
                return await call_next(request)
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

        async def stream(self, request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
            try:
                async for piece in call_next(request):
                    yield piece
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

    engine = Counting("never", pause=forever)
    task = asyncio.ensure_future(ask(through(engine, Careful("x")), way))
    for _ in range(10):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert seen == ["cancelled"]
    assert engine.open == 0


# What it keeps of the engine


class Renderer(ScriptedEngine):
    profile = Profile(tools=False, context_window=3)
    closed = 0

    def rendered(self, request: Request, answer: Message | None) -> tuple[Prompt, ...]:
        return (Prompt(request.messages[0].text, ()),)

    async def aclose(self) -> None:
        self.closed += 1


async def test_it_can_what_the_engine_can() -> None:
    inner = Renderer(name="clerk")
    engine = through(inner, MaxTokens(5))
    assert isinstance(engine, Renders)
    assert engine.rendered(REQUEST, None) == (Prompt("hello", ()),)
    assert profile_for(engine) is inner.profile
    assert engine.model_info() == ModelInfo("clerk", provider="test")
    await MiddlewareEngine.aclose(engine)
    assert inner.closed == 1
    plain = through(FunctionEngine(cast("Any", echo)), MaxTokens(5))
    assert not isinstance(plain, Renders)
    await MiddlewareEngine.aclose(plain)  # it holds nothing


async def test_without_middleware_it_is_the_engine() -> None:
    engine = ScriptedEngine("hi")
    assert around(engine, ()) is engine


async def test_around_an_engine_that_has_some_there_is_one_account() -> None:
    inner = around(ScriptedEngine(echo), [Saying("inner", "inner")])
    both = around(inner, [Saying("outer", "outer")])
    result = await both.infer(REQUEST)
    assert result.content == "hello outer inner"
    assert result.around is not None
    assert [sent.by for sent in result.around.sent] == [("outer", "inner")]


def test_what_is_no_middleware_is_refused() -> None:
    with pytest.raises(UserError, match="is no middleware"):
        MiddlewareEngine(ScriptedEngine(), [cast("Any", print)])


@pytest.mark.parametrize(
    "make",
    [
        lambda: RequestMiddleware(cast("Any", 1)),
        lambda: StreamMiddleware(cast("Any", 1)),
        lambda: DualMiddleware(cast("Any", print), cast("Any", 1)),
        lambda: ChangeRequest(cast("Any", "x")),
    ],
    ids=["request", "stream", "dual", "change"],
)
def test_made_of_what_is_no_function(make: Any) -> None:
    with pytest.raises(UserError, match="takes functions, not "):
        make()


def test_names_are_the_functions_own_or_given() -> None:
    def quiet(request: Request) -> Request:
        return request

    class Callable:
        def __call__(self, request: Request) -> Request:
            return request

    assert ChangeRequest(quiet).name == "quiet"
    assert ChangeRequest(Callable()).name == "Callable"
    assert ChangeRequest(quiet, "silent").name == "silent"
    assert repr(ChangeRequest(quiet)) == "<ChangeRequest quiet>"


@way_of_asking
async def test_a_change_may_take_its_time(way: str) -> None:
    async def slow(request: Request) -> Request:
        await asyncio.sleep(0)
        return saying(request, "slowly")

    result = await ask(through(ScriptedEngine(echo), ChangeRequest(slow)), way)
    assert result.content == "hello slowly"


async def test_a_change_that_is_no_request_is_told_as_such() -> None:
    odd = ChangeRequest(lambda _: 3, "odd")  # pyright: ignore[reportArgumentType, reportUnknownLambdaType]
    with pytest.raises(MiddlewareFailed, match="'odd' gave a int, not a Request to pass on"):
        await MiddlewareEngine(ScriptedEngine("never"), [odd]).infer(Request((user("hi"),)))
