"""A run explained: exactly what was sent, what came back, what decided, what may be done next."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from pydantic import BaseModel

from flyball import (
    Agent,
    AutoContext,
    ChangeRequest,
    ContextOverflow,
    Knowledge,
    Limits,
    MaxTokens,
    MemoryJournal,
    ModelRepair,
    ModelRetry,
    Request,
    RequestMiddleware,
    Result,
    RetryPolicy,
    RunContext,
    StaticKnowledgeBase,
    ToolCallFilterResult,
    ToolCallRejection,
    fallback,
    retrying,
    tool,
)
from flyball.adapters.cli.next_commands import commands
from flyball.adapters.cli.on_the_way import on_the_way
from flyball.adapters.cli.page import print_explanation
from flyball.adapters.cli.timeline import steps_of
from flyball.core.errors import ContextExceeded, EngineError, FlyballError, MiddlewareFailed
from flyball.core.events import Delivered, Event
from flyball.core.messages import Document, Image, Message, Role, Text, Thinking, assistant, user
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import tool_call
from flyball.inference.middleware.kinds import CallNext
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.projections.explanation import Explanation, explain
from flyball.orchestrate.recorded import send_signal
from flyball.orchestrate.rendering import with_prompts
from tests.adapters.cli.conftest import TOOLBOX, Flyball


class Town(BaseModel):
    name: str


@tool
async def weather(city: str) -> str:
    """The weather in a city."""
    if city == "Atlantis":
        raise RuntimeError("too wet")
    return f"rain in {city}"


@tool(approval=True)
async def burn(city: str) -> str:
    """Burn a city."""
    return f"{city} burns"


async def explained(engine: ScriptedEngine, prompt: Any = "Rome?", **options: Any) -> Explanation:
    """A run's explanation, whose requests are the very ones that the engine got."""
    journal, run = MemoryJournal(), options.pop("run", {})
    prompt = options.pop("prompt", prompt)
    try:
        await Agent(engine, **options).run(prompt, journal=journal, loop_id="loop", **run)
    except FlyballError:
        pass
    told = explain(await journal.read("loop"))
    assert [turn.sent for turn in told.turns] == engine.calls
    return told


async def test_each_request_is_what_the_engine_got() -> None:
    engine = ScriptedEngine(
        tool_call("weather", {"city": "Rome"}), tool_call("weather", {"city": "Atlantis"}), "Wet."
    )
    told = await explained(engine, tools=[weather], instructions="Be brief.")
    assert [turn.decided for turn in told.turns] == [
        ("the model: tool_call", "the tool weather: return"),
        ("the model: tool_call", "the tool weather: failed: RuntimeError: too wet"),
        ("the model: stop", "the run ended: success"),
    ]
    assert [[record.name for record in turn.tools] for turn in told.turns] == [["weather"], ["weather"], []]
    assert told.verdict == "It has its answer: the model answered."
    assert [step.command.split()[1] for step in commands(told)] == ["replay", "chat", "fork"]


async def test_a_check_that_refused_and_one_that_accepted() -> None:
    def positive(ctx: RunContext[Any], output: int) -> int:
        if output < 0:
            raise ModelRetry("below zero")
        return output

    answers = [tool_call("final_result", {"result": value}) for value in ("x", -1, 3)]
    told = await explained(
        ScriptedEngine("no call", *answers), output=int, retries=5, validators=[positive], output_mode="tool"
    )
    refused = [[text for text in turn.decided if "refused" in text] for turn in told.turns]
    assert [len(texts) for texts in refused] == [1, 1, 1, 0]
    assert "plain text is not an answer" in refused[0][0]
    assert "below zero" in refused[2][0]
    assert told.verdict == "It has its answer: the check accepted it."


@pytest.mark.parametrize("answer", ['{"name": "Rome"}', EngineError("down")], ids=["mended", "failed"])
async def test_a_repair_by_a_model(answer: Any) -> None:
    told = await explained(
        ScriptedEngine("Rome.", '{"name": "Oslo"}'),
        output=Town,
        output_mode="native",
        features=[ModelRepair(ScriptedEngine(answer, name="mender"))],
    )
    decided = told.turns[0].decided
    if isinstance(answer, str):
        assert 'mender was asked for a repair: {"name": "Rome"}' in decided
        assert decided[-3:-1] == ("the check put the answer right: model", "the check accepted the answer")
        assert len(told.turns) == 1
    else:
        assert "the model call for a repair failed: INFERENCE_ENGINE_ERROR: down" in decided
        assert len(told.turns) == 2
    assert told.turns[0].answer is not None
    assert told.turns[0].answer.text == "Rome.", "what the mender said is no answer"


@pytest.mark.parametrize("answer", ["A talk.", EngineError("down")], ids=["made", "failed"])
async def test_a_summary_by_a_model(answer: Any) -> None:
    talk = [user("Hi."), assistant("word " * 200), user("And?"), assistant("word " * 200)]
    summing = ScriptedEngine(answer, name="summing")
    told = await explained(
        ScriptedEngine("Fine."), features=[AutoContext(100, 1, summing)], run={"messages": talk}
    )
    assert "a summary was wanted before turn 1: there were 5 messages, about 504 tokens" in told.before
    if isinstance(answer, str):
        assert "summing was asked for a summary: A talk." in told.before
        assert "auto_context made 5 messages, about 504 tokens, 3 and 26" in told.before
    else:
        assert "the model call for a summary failed: INFERENCE_ENGINE_ERROR: down" in told.before
    assert len(told.turns) == 1


async def test_a_run_that_stopped_before_its_summary() -> None:
    talk = [user("Hi."), assistant("word " * 200), user("And?"), assistant("word " * 200)]
    journal = MemoryJournal()
    agent = Agent(ScriptedEngine("Fine."), features=[AutoContext(100, 1, ScriptedEngine("A talk."))])
    await agent.run("So?", messages=talk, journal=journal, loop_id="loop")
    events = await journal.read("loop")
    assert explain(events[:2]).verdict == (
        "It is not over: nothing is recorded after turn 1 came to the summary of what was said."
    )
    assert [step.about for step in steps_of(events)][:2] == [
        "summary: 2 messages → answer",
        "3 messages → answer",
    ]


async def test_what_was_left_out_because_it_was_too_much() -> None:
    class Narrow(ScriptedEngine):
        async def infer(self, request: Request) -> Result:
            if len(request.messages) > 3:
                self.calls.append(request)
                raise ContextExceeded("too much")
            return await super().infer(request)

    talk = [user("Hi."), assistant("word " * 200), user("And?"), assistant("word " * 200)]
    journal, engine = MemoryJournal(), Narrow("Fine.")
    agent = Agent(engine, features=[ContextOverflow()])
    await agent.run("So?", messages=talk, journal=journal, loop_id="loop")
    (turn,) = explain(await journal.read("loop")).turns
    assert [*turn.earlier, turn.sent] == engine.calls
    assert "context_overflow made 5 messages, about 503 tokens, 3 and 31" in turn.decided


async def test_a_limit_that_decided() -> None:
    engine = ScriptedEngine(*[tool_call("weather", {"city": name}) for name in "abc"])
    told = await explained(engine, tools=[weather], limits=Limits(max_iterations=2))
    assert told.verdict.startswith("It ended by the limit max_iterations: ")
    assert told.turns[-1].decided[-1] == "the run ended: failed by the limit max_iterations"
    assert told.error is not None
    assert commands(told)[0].command == "flyball resume loop"


async def test_a_model_call_that_failed_half_way() -> None:
    journal = MemoryJournal()
    engine = ScriptedEngine("half an answer", chunk=4, fail_after=1, failure=EngineError("gone"))
    async with Agent(engine).run_stream("hi", journal=journal, loop_id="loop") as streamed:
        with pytest.raises(EngineError, match="gone"):
            await streamed.get_result()
    told = explain(await journal.read("loop"))
    assert told.turns[0].partial == assistant("half")
    assert told.turns[0].error is not None
    assert "INFERENCE_ENGINE_ERROR (inference_failure)" in told.verdict
    assert "this kind of error may pass" in commands(told)[0].what
    print_explanation(told)


@pytest.mark.parametrize("allowed", [True, False])
async def test_an_approval(allowed: bool) -> None:
    async def judge(ctx: RunContext[Any], call: Any) -> bool | str:
        return True if allowed else "too cruel"

    told = await explained(
        ScriptedEngine(tool_call("burn", {"city": "Rome"}), "Done."), tools=[burn], approval=judge
    )
    word = "let through" if allowed else "refused: too cruel"
    assert f"approval: burn was {word}" in told.turns[0].decided


async def test_a_filter_and_its_reason() -> None:
    def warm_only(ctx: RunContext[Any], calls: Any) -> ToolCallFilterResult:
        return ToolCallFilterResult(
            (replace(calls[0], args_json='{"city":"Bari"}'), calls[1]), (ToolCallRejection(calls[2], "cold"),)
        )

    calls = [tool_call("weather", {"city": city}) for city in ("Rome", "Pisa", "Oslo")]
    told = await explained(ScriptedEngine(calls, "Done."), tools=[weather], tool_filters=[warm_only])
    assert told.turns[0].decided[1:4] == (
        'the filter warm_only: weather was let through with other arguments: {"city":"Bari"}',
        "filters: weather was let through",
        "the filter warm_only: weather was refused: cold",
    )


async def test_a_filter_that_fails() -> None:
    def fails(ctx: RunContext[Any], calls: Any) -> ToolCallFilterResult:
        raise RuntimeError("cannot decide")

    told = await explained(
        ScriptedEngine(tool_call("weather", {"city": "Rome"})),
        tools=[weather],
        tool_filters=[fails],
    )
    assert "a tool filter failed" in told.turns[0].decided[1]


async def started(engine: ScriptedEngine, **options: Any) -> MemoryJournal:
    """A run that is left after its first model call."""
    journal = MemoryJournal()
    async with Agent(engine, **options).iter("Go.", journal=journal, loop_id="loop") as run:
        await run.signal(SignalType.PAUSE) if options.get("name") == "paused" else None
    return journal


async def test_a_run_that_is_not_over() -> None:
    told = explain(await (await started(ScriptedEngine())).read("loop"))
    assert told.verdict == "It is not over: nothing is recorded after turn 1 came to the model call."
    assert [step.command for step in commands(told)] == [
        "flyball resume loop",
        "flyball fork loop --at 0 -m MODEL",
    ]
    assert told.turns[0].answer is None
    print_explanation(told)


async def test_a_run_that_is_paused_and_told_something() -> None:
    journal = await started(ScriptedEngine(), name="paused")
    assert await send_signal(journal, "loop", Signal(SignalType.FEEDBACK, by="me", text="Hurry."))
    told = explain(await journal.read("loop"))
    assert told.verdict == "It is paused: a signal asked for that."
    assert told.turns[0].decided == ("the signal pause", "the signal feedback by me: Hurry.")


async def test_a_run_that_waits_for_approval() -> None:
    journal = MemoryJournal()
    engine = ScriptedEngine(tool_call("burn", {"city": "Rome"}))
    import asyncio

    run = asyncio.ensure_future(Agent(engine, tools=[burn]).run("Go.", journal=journal, loop_id="loop"))
    await journal.wait("loop", 1)
    run.cancel()
    await asyncio.wait([run])
    told = explain(await journal.read("loop"))
    assert told.verdict == "It waits for somebody to approve burn."
    assert commands(told)[0].command == "flyball resume loop --approve"


async def test_everything_that_was_sent_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    pictures = (Text("What is this?"), Image("https://x/y.png"), Document("https://x/z.pdf"))
    thought = Message(Role.ASSISTANT, (Thinking("hmm"), Text('{"city": "Rome"}')))
    told = await explained(
        ScriptedEngine(thought), pictures, output={"properties": {"city": {"type": "string"}}},
        output_mode="native", tools=[weather], run={"messages": (user("hi"), assistant("hello"))},
    )  # fmt: skip
    print_explanation(told)
    shown = capsys.readouterr().out
    for text in ("[image https://x/y.png]", "hmm", "schema of the answer", "tool on offer: weather", "hello"):
        assert text in shown
    assert "it began with 2 messages of an earlier conversation" in shown


async def test_what_happened_on_the_way_to_an_answer_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    slow = EngineError("slow down", retry_after=0.0)
    first = ScriptedEngine(slow, EngineError("broken", retryable=False))
    model = fallback(retrying(first, RetryPolicy(max_retries=1)), ScriptedEngine("Yes."))
    journal = MemoryJournal()
    await Agent(model).run("Ready?", journal=journal, loop_id="tried")
    print_explanation(explain(await journal.read("tried")), full=True)
    printed = capsys.readouterr().out
    assert "• try 1 of test failed: INFERENCE_ENGINE_ERROR: slow down" in printed
    assert "• try 2 of test failed: INFERENCE_ENGINE_ERROR: broken" in printed


def test_routes_and_caches_are_told() -> None:
    noted: dict[str, Any] = {"route": {"name": "big", "tokens": 9}, "cached": {"usage": {}}}
    assert list(on_the_way(noted)) == [
        'routed to big ({"tokens":9})',
        "it came from the cache, and cost nothing this time",
    ]
    assert list(on_the_way(None)) == list(on_the_way({"attempts": "odd", "route": 3})) == []


async def test_a_grammar_and_a_tool_choice_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    from flyball import ToolChoice

    told = await explained(
        ScriptedEngine("yes"), grammar='root ::= "yes"', tools=[weather], tool_choice=ToolChoice("none")
    )
    print_explanation(told)
    shown = capsys.readouterr().out
    assert 'root ::= "yes"' in shown
    assert "tool_choice" in shown


async def test_deliveries_and_refusals_are_told() -> None:
    async def broken(ctx: RunContext[Any]) -> str:
        raise RuntimeError("no prompt today")

    told = await explained(ScriptedEngine("x"), instructions=[broken])
    assert told.turns == ()
    assert any("refused" in text for text in told.before)

    async def deliver(ctx: RunContext[Any], outcome: Any, output: Any) -> None:
        raise RuntimeError("nobody at home")

    journal = MemoryJournal()
    await Agent(ScriptedEngine("x"), deliveries=[deliver]).run("hi", journal=journal, loop_id="loop")
    events: list[Event] = await journal.read("loop")
    assert any(isinstance(event, Delivered) and event.error is not None for event in events)
    assert any("nobody at home" in text for text in explain(events).turns[0].decided)


async def test_knowledge_is_told_and_what_is_missing() -> None:
    class Closed:
        def retrieve(self, query: str) -> str:
            raise ConnectionError("closed")

        def store(self, content: str) -> None:
            raise ConnectionError("closed")

    told = await explained(
        ScriptedEngine("x"),
        features=[
            Knowledge(Closed(), on_error="degrade", auto_store=True, name="library"),
            Knowledge(Closed(), on_error="degrade", when="turn", name="wiki"),
            Knowledge(StaticKnowledgeBase("It rains."), when="turn", name="weather"),
        ],
    )
    assert told.before == (
        "went on without knowledge: library could not be asked: ConnectionError: closed",
        "what is sent was changed by weather",
        "went on without knowledge: wiki could not be asked: ConnectionError: closed",
    )
    assert any("library could not store the answer" in text for text in told.turns[0].decided)


# What the engine made of it


async def retold(answer: Any, model: str = "local", **options: Any) -> Explanation:
    """A run's explanation as if that model had answered."""
    return await with_prompts(replace(await explained(ScriptedEngine(answer), **options), model=model))


CHOSEN = replace(assistant("It rains."), extra={"choice": "none"})


async def test_what_the_model_itself_was_given_is_told_from_the_record(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = await retold(CHOSEN, tools=[weather], instructions="Be brief.")
    question, turn = told.turns[0].prompts
    assert (question.answer, told.note, told.turns[0].note) == ("none", "", "")
    assert turn.messages == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Rome?"},
    )
    print_explanation(told)
    shown = capsys.readouterr().out
    assert "which tools does the turn need?" in shown
    assert "it said: none" in shown
    assert "messages more (--full shows them)" in shown
    assert "tool on offer" not in shown, "the request itself is left to --full"
    print_explanation(told, full=True)
    full = capsys.readouterr().out
    assert "--full" not in full
    assert "- weather: The weather in a city." in full
    assert "I want you to the weather in a city" in full
    assert "tool on offer: weather" in full


@pytest.mark.parametrize(("extra", "changed"), [({"sent": "0123456789abcdef"}, True), ({}, False)])
async def test_words_that_have_changed_since_are_said_to_have(
    capsys: pytest.CaptureFixture[str], extra: dict[str, str], changed: bool
) -> None:
    print_explanation(await retold(replace(CHOSEN, extra={"choice": "none", **extra}), tools=[weather]))
    assert ("flyball's words have changed since" in capsys.readouterr().out) is changed


async def test_a_long_grammar_is_folded(capsys: pytest.CaptureFixture[str]) -> None:
    output = {"properties": {name: {"type": "number"} for name in "abcdef"}, "required": ["a"]}
    told = await retold('{"a": 1}', output=output, output_mode="native")
    (prompt,) = told.turns[0].prompts
    assert prompt.grammar is not None
    print_explanation(told)
    assert f"{len(prompt.grammar)} characters in all (--full shows them)" in capsys.readouterr().out
    print_explanation(told, full=True)
    assert prompt.grammar.splitlines()[-1] in capsys.readouterr().out


async def test_where_the_choice_is_not_recorded_only_the_question_is_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = await retold(EngineError("gone"), tools=[weather])
    assert len(told.turns[0].prompts) == 1
    print_explanation(told)
    assert "what it said is not recorded, and what it was given next hangs on that" in capsys.readouterr().out


async def test_what_could_not_be_put_to_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    told = await retold(EngineError("no"), prompt=(Text("What is this?"), Image("https://x/y.png")))
    assert told.turns[0].note.startswith("it could not be put to the model: CONFIG_USAGE: ")
    print_explanation(told)
    shown = capsys.readouterr().out
    assert "it could not be put to the model" in shown
    assert "[image https://x/y.png]" in shown


@pytest.mark.parametrize(
    ("model", "code"),
    [
        ("gone-for-ever", "CONFIG_UNKNOWN_MODEL"),
        ("anthropic:claude", "CONFIG_MISSING_KEY"),
        ("local:nowhere.gguf", "CONFIG_UNKNOWN_MODEL"),
    ],
)
async def test_an_engine_that_is_not_here_is_a_line_and_the_messages_are_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, model: str, code: str
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    told = await retold("Hello.", model)
    assert told.note.startswith(
        f"what the engine made of these messages cannot be told on this machine: {code}"
    )
    assert told.turns[0].prompts == ()
    print_explanation(told)
    shown = capsys.readouterr().out
    assert code in shown
    assert "Rome?" in shown


async def test_an_engine_that_takes_messages_as_they_are_has_nothing_to_add() -> None:
    told = await retold("Hello.", "test")
    assert (told.note, told.turns[0].prompts) == ("", ())


# The command


def test_the_command(flyball: Flyball) -> None:
    flyball("ask", "Rome?", "-m", "scripted:forecast", "--tools", TOOLBOX + ":weather", "-s", "Be brief.")
    said = flyball("why")
    for text in ("turn 1", "turn 2", "Be brief.", "tool on offer: weather", "rain in Rome", "flyball fork "):
        assert text in said.out
    document = flyball("why", "--json").json
    assert [turn["number"] for turn in document["turns"]] == [1, 2]
    assert document["turns"][0]["sent"]["messages"][0]["parts"][0]["text"] == "Be brief."
    assert "\nturn 1 ─" in said.out
    assert "\nturn 1 ─" not in flyball("why", "--turn", "2").out
    assert flyball("why", "--turn", "9").code == 2


def test_a_fork_is_told(flyball: Flyball) -> None:
    flyball("ask", "one", "-m", "scripted:echo")
    flyball("fork", "last", "two", "--at", "1")
    assert "forked from " in flyball("why").out
    flyball("ask", "hi", "-m", "scripted:hangs", "--deadline", "0.1")
    assert "the limit timeout (0.1 s) passed" in flyball("why").out
    flyball("resume", "-m", "test")
    said = flyball("why").out
    assert "it was tried again" in said
    assert "went on" not in said, "who tries it again goes on with it: that is told once"
    assert "attempt 2" in said


def test_an_explanation_is_a_document() -> None:
    told = Explanation("r", "agent", "m", "init", "exploring", "", (), ())
    assert msgspec.json.decode(msgspec.json.encode(told), type=Explanation) == told


def test_a_line_that_never_ends_is_folded(flyball: Flyball) -> None:
    flyball("ask", "-m", "scripted:echo", "-q", stdin="first " + "x" * 100_000 + " last")
    said = flyball("why").out
    assert len(said) < 10_000
    assert said.count("… 98011 characters more (--full shows them) …") == 2, (
        "what was sent, and what came back"
    )
    assert said.count("first xxx") == said.count("xxx last") == 2
    assert flyball("why", "--full").out.count("x" * 100_000) == 2


# Middleware


@ChangeRequest
def hushed(request: Request) -> Request:
    messages = [
        replace(message, parts=(Text("Hush."),)) if message.role is Role.USER else message
        for message in request.messages
    ]
    return replace(request, messages=tuple(messages))


async def test_what_middleware_sent_is_what_was_sent() -> None:
    engine = ScriptedEngine(tool_call("weather", {"city": "Rome"}), "Rain.")
    told = await explained(engine, tools=[weather], features=[MaxTokens(7), hushed])
    assert [turn.sent.messages[0].text for turn in told.turns] == ["Hush.", "Hush."]
    for turn in told.turns:
        assert "max_tokens, hushed changed what was sent: messages, settings" in turn.decided
        assert turn.called
        assert not turn.earlier


async def test_several_calls_are_all_told(capsys: pytest.CaptureFixture[str]) -> None:
    @RequestMiddleware
    async def twice(request: Request, call_next: CallNext) -> Result:
        await call_next(request)
        await call_next(request)
        return await call_next(hushed_as(request))

    def hushed_as(request: Request) -> Request:
        return replace(request, messages=(user("Hush."),))

    engine, journal = ScriptedEngine("one", "two", "three"), MemoryJournal()
    await Agent(engine, features=[twice]).run("Rome?", journal=journal, loop_id="loop")
    (turn,) = explain(await journal.read("loop")).turns
    assert [*turn.earlier, turn.sent] == engine.calls[1:]
    assert turn.decided[:2] == (
        "twice changed what was sent: messages",
        "middleware called the model 3 times",
    )
    print_explanation(explain(await journal.read("loop")), full=True)
    shown = capsys.readouterr().out
    assert shown.index("sent before") < shown.index("Rome?") < shown.index("Hush.")


@pytest.mark.parametrize("failing", [False, True], ids=["answers", "fails"])
async def test_a_model_that_was_not_called_is_told(
    capsys: pytest.CaptureFixture[str], *, failing: bool
) -> None:
    @RequestMiddleware
    async def instead(request: Request, call_next: CallNext) -> Result:
        if failing:
            raise ValueError("no")
        return Result(assistant("Mine."))

    journal = MemoryJournal()
    agent = Agent(ScriptedEngine(), features=[MaxTokens(5), instead])
    with pytest.raises(MiddlewareFailed) if failing else nullcontext():
        await agent.run("Rome?", journal=journal, loop_id="loop")
    told = await with_prompts(replace(explain(await journal.read("loop")), model="local"))
    (turn,) = told.turns
    assert not turn.called
    assert not turn.prompts, "it was given nothing"
    assert turn.sent.messages == (user("Rome?"),)
    did = "failed" if failing else "answered"
    assert turn.decided[0] == f"the middleware instead {did}: the model was not called"
    print_explanation(told)
    assert "not sent" in capsys.readouterr().out
