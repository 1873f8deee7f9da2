"""The methods: what they send, what they read, and that a model which knows the answers gets all points."""

from __future__ import annotations

import json
from typing import Any

import pytest
from bench.control.methods import METHODS, VOTERS, Reply, instructions_for, methods_for
from bench.control.tally import score
from bench.control.tasks import Call, Task, ToolTask, all_tasks, extraction_tasks, spellings, tool_tasks
from msgspec.structs import replace

from flyball.core.errors import EngineError
from flyball.core.messages import FinishReason, Message
from flyball.inference.answers import multi_tool_call_answer, text_answer, tool_call
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine, ScriptedEngine

TASKS = {task.prompt: task for task in all_tasks()}
TIMER = next(task for task in tool_tasks() if task.name == "timer-ten")
HELLO = next(task for task in tool_tasks() if task.name == "hello")
PAPER = next(task for task in extraction_tasks() if task.name == "printer-paper")


async def knowing(request: Request) -> Message:
    """A model that knows the tasks: it answers as the request asks it to, by calls or in JSON."""
    task = TASKS[request.messages[-1].text]
    if not isinstance(task, ToolTask):
        return text_answer(json.dumps(task.answer))
    if not request.tools:
        calls = [{"tool": call.tool, "args": spellings(call)[0]} for call in task.calls]
        return text_answer(json.dumps({"calls": calls}))
    if not task.calls:
        return text_answer("You are welcome.")
    return multi_tool_call_answer(*[tool_call(call.tool, spellings(call)[0]) for call in task.calls])


@pytest.mark.parametrize("method", METHODS)
async def test_who_knows_the_answers_gets_all_points(method: str) -> None:
    asked = methods_for(FunctionEngine(knowing))[method]
    for task in TASKS.values():
        got = score(task, await asked.answer(task))
        assert (got.valid, got.right, got.parts_right) == (True, True, got.parts), task.id


async def _reply(method: str, task: Task, said: Any) -> Reply:
    return await methods_for(ScriptedEngine(*[said] * VOTERS))[method].answer(task)


FENCED = 'Sure!\n```json\n{"calls": [{"tool": "set_timer", "args": {"minutes": 10}}]}\n```'


async def test_repair_reads_what_plain_does_not() -> None:
    plain, repaired = await _reply("plain", TIMER, FENCED), await _reply("repair", TIMER, FENCED)
    assert (plain.valid, plain.calls, plain.text) == (False, None, FENCED)
    assert (repaired.valid, repaired.calls) == (True, (Call("set_timer", {"minutes": 10}),))


async def test_plain_and_repair_read_one_and_the_same_answer() -> None:
    engine = ScriptedEngine(FENCED)
    methods = methods_for(engine)
    replies = [await methods[name].answer(TIMER) for name in ("plain", "repair", "plain")]
    assert len(engine.calls) == 1
    assert [reply.valid for reply in replies] == [False, True, False]
    assert {reply.seconds for reply in replies} == {replies[0].seconds}


@pytest.mark.parametrize("method", METHODS)
async def test_what_was_cut_is_not_valid(method: str) -> None:
    cut = replace(text_answer(json.dumps(PAPER.answer)), finish_reason=FinishReason.LENGTH)
    reply = await _reply(method, PAPER, cut)
    assert (reply.cut, reply.valid, reply.value) == (True, False, PAPER.answer)


@pytest.mark.parametrize("method", METHODS)
async def test_calls_that_were_cut_are_not_valid(method: str) -> None:
    if method in ("grammar", "vote"):
        said = multi_tool_call_answer(tool_call("set_timer", {"minutes": 10}))
    else:
        said = text_answer('{"calls": [{"tool": "set_timer", "args": {"minutes": 10}}]}')
    assert (await _reply(method, TIMER, said)).valid
    cut = await _reply(method, TIMER, replace(said, finish_reason=FinishReason.LENGTH))
    assert (cut.cut, cut.valid) == (True, False)


@pytest.mark.parametrize("method", METHODS)
async def test_an_answer_that_does_not_follow_the_schema_is_not_valid(method: str) -> None:
    reply = await _reply(method, PAPER, json.dumps({**PAPER.answer, "quantity": "a dozen"}))
    assert (reply.valid, reply.value["quantity"]) == (False, "a dozen")


async def test_the_agent_does_not_repair_here() -> None:
    fenced = f"```json\n{json.dumps(PAPER.answer)}\n```"
    assert not (await _reply("grammar", PAPER, fenced)).valid


WRONG_CALLS = {
    "no such tool": tool_call("set_timers", {"minutes": 10}),
    "wrong argument": tool_call("set_timer", {"minutes": "ten"}),
    "no JSON": tool_call("set_timer", '{"minutes":'),
    "no object": tool_call("set_timer", "[10]"),
}


@pytest.mark.parametrize("call", WRONG_CALLS)
async def test_calls_that_cannot_be_run_are_not_valid(call: str) -> None:
    reply = await _reply("grammar", TIMER, WRONG_CALLS[call])
    assert not reply.valid


async def test_text_without_a_call_says_that_no_tool_is_needed_and_silence_does_not() -> None:
    hello = await _reply("grammar", HELLO, "Hello!")
    assert (hello.text, hello.calls, hello.valid) == ("Hello!", (), True)
    assert not (await _reply("grammar", HELLO, " ")).valid


async def test_the_agent_is_asked_as_a_user_would() -> None:
    engine = ScriptedEngine("Hello!", json.dumps(PAPER.answer))
    grammar = methods_for(engine)["grammar"]
    await grammar.answer(HELLO)
    await grammar.answer(PAPER)
    tools, schema = engine.calls
    assert [tool.name for tool in tools.tools] == [tool.name for tool in HELLO.tools]
    assert [tool.parameters for tool in tools.tools] == [tool.schema for tool in HELLO.tools]
    assert schema.output is not None
    assert schema.output.schema == PAPER.schema
    assert [message.text for message in schema.messages] == [PAPER.instructions, PAPER.prompt]


def test_the_instructions_hold_everything_that_is_on_offer() -> None:
    for task in TASKS.values():
        text = instructions_for(task)
        assert text.startswith(task.instructions)
        if isinstance(task, ToolTask):
            assert all(json.dumps(tool.description) in text for tool in task.tools)
        else:
            assert json.dumps(task.schema) in text


@pytest.mark.parametrize("method", METHODS)
async def test_an_engine_that_fails_gives_no_reply(method: str) -> None:
    with pytest.raises(EngineError):
        await _reply(method, TIMER, EngineError("down"))


async def test_the_majority_of_what_is_valid_wins_with_its_share() -> None:
    ten, nine = tool_call("set_timer", {"minutes": 10}), tool_call("set_timer", {"minutes": 9})
    wrong = tool_call("set_timer", {"minutes": "ten"})
    engine = ScriptedEngine(nine, ten, wrong, ten, "Words.")
    reply = await methods_for(engine)["vote"].answer(TIMER)
    assert (reply.calls, reply.confidence) == ((Call("set_timer", {"minutes": 10}),), 2 / 5)
    seeds = [request.settings.seed for request in engine.calls]
    assert len(set(seeds)) == VOTERS
    assert {request.settings.temperature for request in engine.calls} == {0.7}
    nothing = await methods_for(ScriptedEngine(*[wrong] * VOTERS))["vote"].answer(TIMER)
    assert (nothing.valid, nothing.confidence) == (False, 0.0)
