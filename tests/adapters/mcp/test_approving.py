"""Calls that wait for a person: the client's user is asked, or told how to approve."""

from __future__ import annotations

import asyncio

import pytest
from mcp import MCPError
from mcp.client import ClientRequestContext
from mcp_types import INVALID_PARAMS, ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from flyball import Agent
from flyball.adapters.mcp.approving import form
from flyball.core.events import SignalReceived
from flyball.core.messages import ToolCall
from flyball.core.signals import Signal, SignalType
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.family import WaitingCall
from flyball.orchestrate.local import LocalRuntime
from flyball.orchestrate.service import Service
from tests.adapters.mcp.agents import service_of
from tests.adapters.mcp.clients import ERAS, Ask, loop_of, served, text_of


def answering(*answers: ElicitResult, asked: list[str] | None = None) -> Ask:
    left = list(answers)

    async def ask(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        if asked is not None:
            asked.append(params.message)
        return left.pop(0)

    return ask


YES = ElicitResult(action="accept", content={"approve": True})
NO = ElicitResult(action="accept", content={"approve": False, "reason": "too much"})
DECLINED = ElicitResult(action="decline")
DISMISSED = ElicitResult(action="cancel")


async def signals(service: Service, loop_id: str) -> list[Signal]:
    events, _ = await service.load(loop_id)
    return [event.signal for event in events if isinstance(event, SignalReceived)]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("answer", "then"),
    [(YES, "Then: paid 5"), (NO, "too much"), (DECLINED, "the user said no")],
    ids=["yes", "no", "declined"],
)
async def test_the_user_is_asked(era: str, answer: ElicitResult, then: str) -> None:
    service, asked = service_of(), list[str]()
    async with served(service, era, ask=answering(answer, asked=asked)) as server:
        result = await server.client.call_tool("shop", {"prompt": "pay 5"})
    assert then in text_of(result)
    assert not result.is_error
    assert asked == ['The agent shop wants to run pay with {"amount":5}. Approve it?']
    [signal] = await signals(service, loop_of(result))
    assert (signal.by, signal.call_id) == ("mcp", "call-5")


@pytest.mark.parametrize("era", ERAS)
async def test_each_call_is_asked_about(era: str) -> None:
    service, asked = service_of(), list[str]()
    async with served(service, era, ask=answering(YES, YES, asked=asked)) as server:
        result = await server.client.call_tool("shop", {"prompt": "pay 5 and 7"})
    assert not result.is_error
    assert sorted(asked) == [
        f'The agent shop wants to run pay with {{"amount":{amount}}}. Approve it?' for amount in (5, 7)
    ]
    assert {signal.call_id for signal in await signals(service, loop_of(result))} == {"call-5", "call-7"}


@pytest.mark.parametrize("era", ERAS)
async def test_the_user_is_asked_for_an_agent_under_the_agent(era: str) -> None:
    asked = list[str]()
    async with served(service_of(), era, ask=answering(YES, asked=asked)) as server:
        result = await server.client.call_tool("boss", {"prompt": "pay 5"})
    assert text_of(result) == "Done: Then: paid 5"
    assert len(asked) == 1


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("answers", [(), (DISMISSED,)], ids=["cannot be asked", "did not decide"])
async def test_who_cannot_be_asked_is_told_how_to_approve(
    era: str, answers: tuple[ElicitResult, ...]
) -> None:
    service, ask = service_of(), answering(*answers) if answers else None
    asked = {"prompt": "pay 5"}
    async with served(service, era, ask=ask, how="`signal {loop_id} approve`") as server:
        result = await server.client.call_tool("shop", asked)
        loop_id = loop_of(result)
        await service.signal(loop_id, Signal(SignalType.APPROVE))
        again = await server.client.call_tool("shop", {**asked, "loop_id": loop_id})
    assert result.is_error
    assert text_of(result) == (
        "AWAITING_APPROVAL: the run waits for a person to approve:\n"
        '- shop wants to run pay {"amount":5}\n'
        f"To approve: `signal {loop_id} approve`\n"
        f"Then call this tool again with the same prompt and loop_id={loop_id} to have the answer."
    )
    assert text_of(again) == "Then: paid 5"


async def test_somebody_else_decides_while_the_user_is_asked() -> None:
    service, withdrawn = service_of(), asyncio.Event()

    async def ask(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        await service.signal("mine", Signal(SignalType.APPROVE, by="eve"))
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.set()
        raise AssertionError("nobody answers")

    async with served(service, "legacy", ask=ask) as server:
        result = await server.client.call_tool("shop", {"prompt": "pay 5", "loop_id": "mine"})
        assert text_of(result) == "Then: paid 5"
        await withdrawn.wait()


async def test_a_client_that_fails_to_ask_is_told_how_to_approve() -> None:
    async def ask(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        raise ValueError("no window")

    async with served(service_of(), "legacy", ask=ask) as server:
        result = await server.client.call_tool("shop", {"prompt": "pay 5"})
    assert text_of(result).startswith("AWAITING_APPROVAL: ")


async def test_what_a_client_sends_back_must_be_of_its_own_call() -> None:
    service = service_of()
    yes = {"mine/call-5": YES}
    async with served(service, "auto", ask=answering()) as server:
        call = server.client.session.call_tool
        first = await call("shop", {"prompt": "pay 5", "loop_id": "mine"}, allow_input_required=True)
        for name, prompt, state in [
            ("shop", "pay 6", "mine"),
            ("boss", "pay 5", "mine"),
            ("shop", "pay 5", "another"),
        ]:
            with pytest.raises(MCPError) as raised:
                await call(name, {"prompt": prompt}, input_responses={**yes}, request_state=state)
            assert raised.value.code == INVALID_PARAMS
        assert await signals(service, "mine") == []
        result = await call("shop", {"prompt": "pay 5"}, input_responses={**yes}, request_state="mine")
    assert first.result_type == "input_required"
    assert result.result_type == "complete"
    assert [signal.type for signal in await signals(service, "mine")] == [SignalType.APPROVE]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("answers", [(), (DISMISSED,)], ids=["cannot be asked", "did not decide"])
async def test_of_an_answer_that_waits_the_model_that_called_reads_nothing(
    era: str, answers: tuple[ElicitResult, ...]
) -> None:
    service = Service(
        [Agent(ScriptedEngine("The draft."), name="clerk", output_approval=True)], LocalRuntime()
    )
    asked = {"prompt": "write"}
    async with served(service, era, ask=answering(*answers) if answers else None) as server:
        result = await server.client.call_tool("clerk", asked)
        loop_id = loop_of(result)
        (one,) = await service.waiting(loop_id)
        await service.signal(loop_id, Signal(SignalType.APPROVE))
        again = await server.client.call_tool("clerk", {**asked, "loop_id": loop_id})
    assert "draft" not in result.model_dump_json()
    assert f"\n- an answer of clerk ({one.call.id})\n" in text_of(result)
    assert text_of(again) == "The draft."


def test_the_form_says_what_a_yes_is_to() -> None:
    call = WaitingCall("l", "clerk", ToolCall("c", "pay", "{}"), "approval")
    answer = WaitingCall("l", "clerk", ToolCall("answer-1", "the answer", "{}"), "approval", answer=True)
    told = [form(one)["properties"]["approve"]["description"] for one in (call, answer)]
    assert told == ["Let the call run", "Let the answer count"]
