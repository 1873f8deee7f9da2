"""Runs that end with text: what is sent, what comes back, and what is refused before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import Agent, ModelSettings, RunContext
from flyball.core.errors import InvalidMessage, NoEngine, RuleFailed, UserError
from flyball.core.events import Admitted, Outcome
from flyball.core.messages import (
    Audio,
    Document,
    FinishReason,
    Image,
    Message,
    Role,
    Text,
    Thinking,
    ToolCall,
    assistant,
    system,
    tool_result,
    user,
)
from flyball.core.usage import RunUsage, Usage
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.projections import InferenceStartEvent, timeline
from flyball.testing.split import SplitDriver
from tests.orchestrate.conftest import Runner, kinds_of
from tests.orchestrate.models import NeverAsked, Script
from tests.orchestrate.scenarios import add, said


async def test_a_plain_run_owes_nothing_but_the_model_call(run: Runner) -> None:
    script = Script("hello")
    result = await run(Agent(script), "hi")
    assert result.output == result.text == "hello"
    assert result.outcome is Outcome.SUCCESS
    assert result.messages == (
        user("hi"),
        Message(Role.ASSISTANT, (Text("hello"),), model="test", finish_reason=FinishReason.STOP),
    )
    assert result.usage == RunUsage(requests=1)
    assert kinds_of(await result.events()) == ["Started", "ModelAnswered", "Ended"]
    assert script.last.messages == (user("hi"),)
    assert script.last.tools == ()
    assert script.last.allows_text


async def test_thinking_stays_in_the_history_and_is_no_output(run: Runner) -> None:
    answer = said(Thinking("let me see", signature="s"), Text("yes"), usage=Usage(10, 5, reasoning_tokens=3))
    result = await run(Agent(Script(answer)), "well?")
    assert result.output == "yes"
    assert result.messages[-1].thinking == "let me see"
    assert result.usage == RunUsage(10, 5, reasoning_tokens=3, requests=1)


PARTS = [
    Image("https://example.org/a.png", "image/png", "low"),
    Audio("https://example.org/a.mp3"),
    Document("https://example.org/a.pdf", title="A"),
]


@pytest.mark.parametrize(
    ("prompt", "parts"),
    [
        ("look", (Text("look"),)),
        (PARTS[0], (PARTS[0],)),
        (["look", *PARTS, "well?"], (Text("look"), *PARTS, Text("well?"))),
        ((Text("look"),), (Text("look"),)),
        ("ein L\ud83e\udd81we \ud800", (Text("ein L🦁we �"),)),
        (["half \ud800"], (Text("half �"),)),
    ],
    ids=["text", "part", "list", "tuple", "half a character", "half a character in a list"],
)
async def test_a_prompt_may_be_text_or_parts(run: Runner, prompt: Any, parts: tuple[Any, ...]) -> None:
    script = Script("ok")
    result = await run(Agent(script), prompt)
    assert script.last.messages[-1].parts == parts
    assert result.messages[0].parts == parts


@pytest.mark.parametrize("prompt", ["", [], (), None])
async def test_nothing_to_run_is_refused(run: Runner, prompt: Any) -> None:
    with pytest.raises(UserError, match=r"empty|nothing to run"):
        await run(Agent(NeverAsked()), prompt)


@pytest.mark.parametrize("prompt", [5, [5], {"role": "user"}, [ToolCall("a", "b")], Thinking("hm")])
async def test_a_prompt_that_a_user_cannot_say_is_refused(run: Runner, prompt: Any) -> None:
    with pytest.raises(InvalidMessage):
        await run(Agent(NeverAsked()), prompt)


async def test_what_is_refused_leaves_nothing_in_the_journal() -> None:
    journal = MemoryJournal()
    agent = Agent(NeverAsked())
    for prompt, messages in (
        (None, []),
        ("", []),
        ("hi", [assistant("hello")]),
        (None, [system("be brief")]),
    ):
        with pytest.raises(UserError):
            await agent.run(prompt, messages=messages, journal=journal)
    assert await journal.loops() == []


async def test_a_conversation_goes_on_from_earlier_messages(run: Runner) -> None:
    first = await run(Agent(Script("I am fine.")), "How are you?")
    script = Script("You asked how I am.")
    second = await run(Agent(script), "What did I ask?", messages=first.messages)
    assert script.last.messages == (*first.messages, user("What did I ask?"))
    assert second.messages[: len(first.messages)] == first.messages
    assert second.usage.requests == 1, "what the history used is not this run's"


@pytest.mark.parametrize(
    "messages",
    [[user("hi")], [user("hi"), assistant("", ToolCall("a", "add")), tool_result("a", "add", 3)]],
    ids=["a user's message", "tool results"],
)
async def test_messages_that_end_with_something_to_answer_need_no_prompt(
    run: Runner, messages: list[Message]
) -> None:
    script = Script("well")
    result = await run(Agent(script), messages=messages)
    assert script.last.messages == tuple(messages)
    assert result.output == "well"


async def test_a_prompt_after_a_users_message_joins_it(run: Runner) -> None:
    script = Script("ok")
    await run(Agent(script), "and this", messages=[user("take that")])
    assert script.last.messages == (user(["take that", "and this"]),)


CALL = assistant("", ToolCall("a", "add"))
RESULT = tool_result("a", "add", 3)
INVALID: dict[str, list[Any]] = {
    "begins with an assistant": [assistant("hello")],
    "begins with a result": [RESULT],
    "a call without a result": [user("hi"), CALL],
    "a call answered too late": [user("hi"), CALL, user("well?"), RESULT],
    "a result for no call": [user("hi"), assistant("hello"), RESULT],
    "a result for another call": [user("hi"), CALL, tool_result("b", "add", 3)],
    "two results for one call": [user("hi"), CALL, Message(Role.TOOL, (*RESULT.parts, *RESULT.parts))],
    "doubled call ids": [user("hi"), assistant("", ToolCall("a", "add"), ToolCall("a", "add")), RESULT],
    "two users in a row": [user("hi"), user("there")],
    "two assistants in a row": [user("hi"), assistant("a"), assistant("b")],
    "a system message in the middle": [user("hi"), system("now"), assistant("a")],
    "two system messages": [system("a"), system("b"), user("hi")],
    "an empty message": [user("hi"), Message(Role.ASSISTANT)],
    "a part in the wrong role": [Message(Role.USER, (ToolCall("a", "add"),)), assistant("a")],
    "a call hidden in a user's message": [user("hi"), Message(Role.ASSISTANT, RESULT.parts)],
    "no messages at all": [{"role": "user", "content": "hi"}],
}


@pytest.mark.parametrize("messages", INVALID.values(), ids=INVALID)
async def test_a_history_that_no_provider_takes_is_refused(run: Runner, messages: list[Any]) -> None:
    with pytest.raises(InvalidMessage):
        await run(Agent(NeverAsked()), "go on", messages=messages)


@pytest.mark.parametrize("messages", [[user("hi"), assistant("hello")], [system("be brief")]])
async def test_a_history_without_anything_to_answer_needs_a_prompt(
    run: Runner, messages: list[Message]
) -> None:
    with pytest.raises(InvalidMessage):
        await run(Agent(NeverAsked()), messages=messages)


# Instructions


async def test_instructions_lead_the_history(run: Runner) -> None:
    script = Script("ok")
    result = await run(Agent(script, instructions=["Be brief.", "Be kind."]), "hi")
    assert script.last.messages == (system("Be brief.\n\nBe kind."), user("hi"))
    assert result.messages[0] == system("Be brief.\n\nBe kind.")


async def test_instructions_replace_the_system_message_of_a_history(run: Runner) -> None:
    script = Script("ok")
    history = [system("Old."), user("hi"), assistant("hello")]
    await run(Agent(script, instructions="New."), "go on", messages=history)
    assert script.last.messages == (system("New."), *history[1:], user("go on"))


async def test_without_instructions_the_system_message_of_a_history_stays(run: Runner) -> None:
    script = Script("ok")
    history = [system("Old."), user("hi"), assistant("hello")]
    await run(Agent(script), "go on", messages=history)
    assert script.last.messages == (*history, user("go on"))


async def test_prompt_functions_are_asked_once_in_their_order(run: Runner) -> None:
    script = Script("ok")
    asked: list[str] = []

    def sync(ctx: RunContext[Any]) -> str:
        asked.append(ctx.prompt)
        return "One."

    async def later(ctx: RunContext[Any]) -> str:
        return f"Two for {ctx.deps} in {ctx.metadata['where']}."

    agent = Agent(script, instructions=["Zero.", sync, later])
    result = await run(agent, "hi", deps="Ann", metadata={"where": "Rome"})
    assert script.last.messages[0] == system("Zero.", "One.", "Two for Ann in Rome.")
    events = await result.events()
    assert kinds_of(events) == ["Started", "Admitted", "ModelAnswered", "Ended"]
    assert isinstance(events[1], Admitted)
    assert events[1].instructions == ("One.", "Two for Ann in Rome.")
    if run.calm:
        assert asked == ["hi"]


@pytest.mark.parametrize(
    "history", [[], [system("Old."), user("hi"), assistant("hello")]], ids=["new", "old"]
)
async def test_a_prompt_function_with_nothing_to_say_leaves_no_empty_message(
    run: Runner, history: list[Message]
) -> None:
    script = Script("ok")
    await run(Agent(script, instructions=lambda _: ""), "go on", messages=history)
    assert script.last.messages == (*history, user("go on"))


async def test_a_prompt_function_speaks_in_the_place_of_an_old_system_message(run: Runner) -> None:
    script = Script("ok")
    history = [system("Old."), user("hi"), assistant("hello")]
    await run(Agent(script, instructions=lambda _: "New."), "go on", messages=history)
    assert script.last.messages[0] == system("New.")


async def test_a_failing_prompt_function_fails_the_run_before_the_model_is_called(run: Runner) -> None:
    def fails(_: RunContext[Any]) -> str:
        raise KeyError("no such user")

    error = await run.failing(RuleFailed, Agent(NeverAsked(), instructions=fails), "hi")
    assert "no such user" in str(error)
    assert error.caused_by == "KeyError: 'no such user'"
    assert error.partial.messages == (user("hi"),)


async def test_a_prompt_function_sees_the_prompt_and_the_history(run: Runner) -> None:
    def look(ctx: RunContext[Any]) -> str:
        return f"{len(ctx.messages)} {ctx.prompt} {ctx.tool_name!r} {ctx.run_step}"

    script = Script("ok")
    await run(Agent(script, instructions=look), "hi")
    assert script.last.messages[0] == system("1 hi '' 0")


# Settings and models


async def test_how_much_a_model_may_think_reaches_it_and_takes_the_temperature_away(run: Runner) -> None:
    script = Script("hi")
    agent = Agent(script, settings=ModelSettings(temperature=0.5, reasoning_effort="high"))
    result = await run(agent, "hi", settings=ModelSettings(thinking_budget=2000))
    sent = script.last.settings
    assert (sent.thinking_budget, sent.reasoning_effort) == (2000, "high")
    assert sent.effective_temperature is None
    (started,) = [told for told in timeline(await result.events()) if isinstance(told, InferenceStartEvent)]
    assert started.temperature is None


async def test_settings_of_the_run_lie_over_the_agents(run: Runner) -> None:
    script = Script("ok")
    agent = Agent(script, settings=ModelSettings(max_tokens=10, temperature=0.5, options={"a": 1, "b": 1}))
    await run(agent, "hi", settings=ModelSettings(temperature=0.0, options={"b": 2}))
    expected = ModelSettings(max_tokens=10, temperature=0.0, options={"a": 1, "b": 2})
    assert script.last.settings == expected


async def test_a_run_may_have_another_model(run: Runner) -> None:
    result = await run(Agent(NeverAsked()), "hi", model=Script("other", name="other"))
    assert result.output == "other"
    assert result.state.spec.model == "other"


async def test_a_run_may_bring_the_model_that_the_agent_has_not(run: Runner) -> None:
    assert (await run(Agent(), "hi", model=Script("other"))).output == "other"


async def test_an_agent_without_a_model_says_so(run: Runner) -> None:
    with pytest.raises(NoEngine):
        await run(Agent(), "hi")


async def test_a_model_by_name(run: Runner) -> None:
    assert (await run(Agent("test:hello there"), "hi")).output == "hello there"


@pytest.mark.parametrize("loop_id", ["", 5])
async def test_a_loop_id_that_cannot_be_one_is_refused(run: Runner, loop_id: Any) -> None:
    with pytest.raises(UserError, match="loop_id"):
        await run(Agent(NeverAsked()), "hi", loop_id=loop_id)


async def test_metadata_that_cannot_be_recorded_is_refused(run: Runner) -> None:
    with pytest.raises(UserError, match="metadata"):
        await run(Agent(NeverAsked()), "hi", metadata={"what": object()})


@pytest.mark.parametrize(
    ("option", "told"),
    [("lop_id", "did you mean 'loop_id'"), ("colour", r"it has clock, correlation, deferred_results, deps")],
)
async def test_a_slip_in_an_option_is_not_taken_for_silence(run: Runner, option: str, told: str) -> None:
    with pytest.raises(UserError, match=f"no option '{option}'.*{told}"):
        await run(Agent(NeverAsked()), "hi", **{option: "one"})


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"tools": add}, r"tools=\[add\], not one"),
        ({"tools": "add"}, "several"),
        ({"tools": [5]}, "made from a function"),
        ({"instructions": 5}, "text, a function"),
        ({"colour": "red"}, "no option 'colour'"),
    ],
)
def test_an_agent_that_cannot_be_is_refused_when_it_is_made(options: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        Agent(NeverAsked(), **options)


@given(st.text(min_size=1), st.text(min_size=1))
async def test_any_text_goes_through(prompt: str, answer: str) -> None:
    plain = await Agent(Script(answer)).run(prompt)
    split = await Agent(Script(answer)).run(prompt, runtime=SplitDriver())
    assert plain.output == split.output == answer
    assert plain.messages == split.messages


@given(st.text(st.characters(), min_size=1))
async def test_text_that_utf_8_cannot_hold_is_replaced_not_refused(text: str) -> None:
    result = await Agent(Script(text)).run(text, runtime=SplitDriver())
    assert result.messages[0].text.encode()
    assert result.output.encode()
