"""What a conversation goes on from: what has led to answers."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from flyball import Agent
from flyball.core.errors import FlyballError
from flyball.core.events import Outcome
from flyball.core.flow import FlowNode
from flyball.core.messages import Message, Text, assistant, user
from flyball.orchestrate.contracts import Mode, SystemRequest
from flyball.orchestrate.contracts.asked import asked_in
from flyball.orchestrate.contracts.conversation import conversation
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.local import LocalRuntime
from flyball.orchestrate.projections.said import counts_after
from flyball.orchestrate.service import Service
from flyball.testing import ScriptedEngine


@given(st.lists(st.booleans(), max_size=6))
async def test_whatever_fails_only_what_was_answered_counts(well: list[bool]) -> None:
    script = [f"answer {number}" if ok else FlyballError("no") for number, ok in enumerate(well)]
    agent = Agent(ScriptedEngine(*script), name="clerk", instructions="Be brief.")
    counted: tuple[Message, ...] = ()
    async with LocalRuntime(MemoryJournal()) as runtime:
        service = Service([agent], runtime)
        for number in range(len(well)):
            asked = SystemRequest(messages=(*counted, user(f"question {number}")))
            await service.handle("clerk", asked, loop_id=f"l{number}")
            counted = counts_after(*await service.load(f"l{number}"))
        await service.aclose()
    expected = [text for n, ok in enumerate(well) if ok for text in (f"question {n}", f"answer {n}")]
    assert [one.text for one in counted] == expected


def test_of_a_flow_that_failed_what_it_went_on_from_counts() -> None:
    asked = SystemRequest(messages=(user("one"), assistant("two"), user("three")), mode=Mode.PLAN)
    state = FlowState("flow", FlowNode("plan"), asked.to_json(), "done", outcome=Outcome.FAILED)
    assert [one.text for one in counts_after([], state)] == ["one", "two"]
    state = msgspec.structs.replace(state, outcome=Outcome.SUCCESS, output="four")
    assert [one.text for one in counts_after([], state)] == ["one", "two", "three", "four"]
    state = FlowState("flow", FlowNode("plan"), "a text", "done", outcome=Outcome.FAILED)
    assert counts_after([], state) == ()


def test_two_texts_that_meet_in_one_message_are_kept_apart() -> None:
    met = (user("mail to ann@x.org"), user("mail to ben@x.org"))
    assert conversation(met).prompt == (Text("mail to ann@x.org"), Text("mail to ben@x.org"))
    asked = SystemRequest(messages=met, mode=Mode.PLAN).to_json()
    assert asked_in(asked) == "mail to ann@x.org\nmail to ben@x.org"
