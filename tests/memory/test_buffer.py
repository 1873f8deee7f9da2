"""ConversationBuffer: whatever is said, what it shows is a valid history, no longer than it may be."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from flyball import Agent, Conversation, ConversationBuffer, MemoryPolicy
from flyball.core.errors import InvalidMessage, MemoryFull, UserError
from flyball.core.history import check_history
from flyball.core.messages import Message, Role, ToolCall, assistant, system, tool_result, user
from flyball.memory.conversation import ConversationSnapshot
from tests.histories import histories
from tests.orchestrate.models import Script

TALK = [
    message for n in range(1, 6) for message in (user(f"Question {n}?"), assistant(f"Answer {n}, about it."))
]
CALL = assistant("", ToolCall("c1", "look", "{}"))
RESULT = tool_result("c1", "look", "seen")


def texts(buffer: ConversationBuffer) -> list[str]:
    return [message.text for message in buffer.messages()]


def test_messages_are_kept_in_order_and_given_as_a_copy() -> None:
    buffer = ConversationBuffer()
    buffer.append(system("Be brief."))
    buffer.extend(TALK[:2])
    assert texts(buffer) == ["Be brief.", "Question 1?", "Answer 1, about it."]
    buffer.messages().clear()
    assert len(buffer.messages()) == 3
    assert len(buffer) == 2, "the system message is not counted"
    buffer.clear()
    assert buffer.messages() == []


def test_the_oldest_exchanges_go_first() -> None:
    buffer = ConversationBuffer(4)
    buffer.append(system("Be brief."))
    buffer.extend(TALK)
    assert texts(buffer) == [
        "Be brief.",
        "Question 4?",
        "Answer 4, about it.",
        "Question 5?",
        "Answer 5, about it.",
    ]
    buffer.append(user("And six?"))
    assert texts(buffer) == ["Be brief.", "Question 5?", "Answer 5, about it.", "And six?"]


def test_under_lru_what_was_recalled_stays() -> None:
    buffer = ConversationBuffer(4, MemoryPolicy(eviction_strategy="lru"))
    buffer.extend(TALK[:4])
    assert [message.text for message in buffer.recall("QUESTION 1")] == ["Question 1?", "Answer 1, about it."]
    buffer.extend(TALK[4:6])
    assert texts(buffer)[::2] == ["Question 1?", "Question 3?"]
    assert buffer.recall(lambda message: message.role is Role.TOOL) == []
    assert buffer.recall("nothing of it") == []
    with pytest.raises(UserError, match="recall takes a text"):
        buffer.recall(3)  # pyright: ignore[reportArgumentType]


def test_what_was_recalled_stays_also_when_all_is_loaded_again() -> None:
    buffer = ConversationBuffer(4, MemoryPolicy(eviction_strategy="lru"))
    buffer.load(TALK[:4])
    buffer.recall("Question 1")
    buffer.load(TALK[:6])
    assert texts(buffer)[::2] == ["Question 1?", "Question 3?"]


def test_under_none_a_full_buffer_refuses() -> None:
    buffer = ConversationBuffer(2, MemoryPolicy(eviction_strategy="none"))
    buffer.append(system("Be brief."))
    buffer.extend(TALK[:2])
    with pytest.raises(MemoryFull) as full:
        buffer.append(TALK[2])
    assert full.value.code == "ORCHESTRATION_MEMORY_FULL"
    assert full.value.details == {"allowed": 2}
    assert len(buffer) == 2
    with pytest.raises(MemoryFull):
        ConversationBuffer(3, buffer.policy).load(TALK)
    with pytest.raises(MemoryFull):
        ConversationBuffer(2, buffer.policy).extend([TALK[0], CALL, RESULT])


def test_a_call_is_shown_with_its_result() -> None:
    buffer = ConversationBuffer()
    buffer.extend([TALK[0], CALL])
    assert buffer.messages() == [TALK[0]]
    assert buffer.pending == CALL
    with pytest.raises(InvalidMessage, match="does not fit behind what was said"):
        buffer.append(user("Hurry!"))
    buffer.append(RESULT)
    assert buffer.messages() == [TALK[0], CALL, RESULT]
    assert buffer.pending is None
    buffer.append(CALL)
    assert buffer.drop_pending() == CALL
    buffer.append(assistant("Done."))
    assert texts(buffer)[-1] == "Done."


def test_of_one_long_exchange_the_oldest_steps_go() -> None:
    buffer = ConversationBuffer(4)
    steps = [
        (assistant("", ToolCall(f"c{n}", "look", "{}")), tool_result(f"c{n}", "look", n)) for n in range(5)
    ]
    buffer.extend([user("Go."), *[message for step in steps for message in step]])
    assert buffer.messages() == [user("Go."), *steps[4]]
    buffer.append(assistant("Done."))
    assert buffer.messages() == [user("Go."), *steps[4], assistant("Done.")]
    small = ConversationBuffer(1)
    small.extend([user("Go."), *steps[0]])
    assert len(small) == 3, "what was said last stays, even where it alone is more"


WRONG: dict[str, list[Any]] = {
    "an answer first": [assistant("Hello.")],
    "the user twice": [user("a"), user("b")],
    "a second system message": [system("a"), system("b")],
    "a system message later": [user("a"), assistant("b"), system("c")],
    "a result without its call": [user("a"), RESULT],
    "another call's result": [user("a"), CALL, tool_result("c2", "look", "")],
    "nothing": [user("a"), Message(Role.ASSISTANT)],
    "no message": ["hello"],
}


@pytest.mark.parametrize("messages", WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_refused_and_leaves_nothing(messages: list[Any]) -> None:
    buffer = ConversationBuffer()
    with pytest.raises(InvalidMessage):
        buffer.extend(messages)
    assert buffer.messages() == []
    assert buffer.pending is None
    talk = ConversationBuffer()
    talk.extend(TALK[:2])
    with pytest.raises(InvalidMessage):
        talk.load(messages)
    assert talk.messages() == TALK[:2]


def test_extend_undoes_what_it_left_out() -> None:
    buffer = ConversationBuffer(4)
    buffer.extend(TALK[:4])
    with pytest.raises(InvalidMessage):
        buffer.extend([*TALK[4:8], TALK[1]])
    assert buffer.messages() == TALK[:4]


@given(histories(), st.integers(1, 12), st.sampled_from(["fifo", "lru"]), st.booleans())
def test_every_view_is_a_valid_history(
    history: list[Message], most: int, strategy: str, one_by_one: bool
) -> None:
    buffer = ConversationBuffer(most, MemoryPolicy(eviction_strategy=strategy))
    if one_by_one:
        for message in history:
            buffer.append(message)
            check_history(buffer.messages())
            assert len(buffer) <= max(most, 3)
    else:
        buffer.load(history)
    seen = buffer.messages()
    check_history(seen, complete=True)
    assert seen[-1] == history[-1]
    assert [message for message in history if message in seen]
    assert seen[:1] == history[:1] or history[0].role is not Role.SYSTEM
    assert len(buffer) == len(history) - (history[0].role is Role.SYSTEM) or len(history) > most


class Talking(RuleBasedStateMachine):
    """Anybody says anything at any time: what fits is kept, and what is kept is valid."""

    def __init__(self) -> None:
        super().__init__()
        self.buffer = ConversationBuffer(5, MemoryPolicy(eviction_strategy="lru"))
        self.said = 0

    def say(self, message: Message) -> None:
        before = self.buffer.messages()
        try:
            self.buffer.append(message)
        except InvalidMessage:
            assert self.buffer.messages() == before
        self.said += 1

    @rule()
    def user_speaks(self) -> None:
        self.say(user(f"u{self.said}"))

    @rule()
    def model_speaks(self) -> None:
        self.say(assistant(f"a{self.said}"))

    @rule(calls=st.integers(1, 2))
    def model_calls(self, calls: int) -> None:
        self.say(assistant("", *[ToolCall(f"c{self.said}.{n}", "look", "{}") for n in range(calls)]))

    @precondition(lambda self: self.buffer.pending is not None)
    @rule()
    def tools_answer(self) -> None:
        assert self.buffer.pending is not None
        results = [tool_result(call.id, call.name, "x").parts[0] for call in self.buffer.pending.tool_calls]
        self.buffer.append(Message(Role.TOOL, tuple(results)))

    @rule()
    def they_give_up(self) -> None:
        self.buffer.drop_pending()

    @rule(number=st.integers(0, 20))
    def it_is_recalled(self, number: int) -> None:
        check_history(self.buffer.recall(f"u{number}"))

    @rule()
    def it_is_loaded_again(self) -> None:
        before = self.buffer.messages()
        self.buffer.load(before)
        assert self.buffer.messages() == before

    @invariant()
    def what_is_kept_is_valid(self) -> None:
        check_history(self.buffer.messages())
        assert len(self.buffer) <= 5


TestTalking = Talking.TestCase


def test_threads_do_not_get_between_each_other() -> None:
    buffer = ConversationBuffer(50)

    def talk(number: int) -> None:
        buffer.extend([user(f"u{number}"), assistant(f"a{number}")])
        check_history(buffer.messages())

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(talk, range(200)))
    said = texts(buffer)
    assert [one[1:] for one in said[::2]] == [one[1:] for one in said[1::2]]


@pytest.mark.parametrize(
    "wrong", [{"max_messages": 0}, {"max_messages": 1.5}, {"eviction_strategy": "best"}], ids=str
)
def test_a_policy_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        MemoryPolicy(**wrong)


async def test_a_conversation_with_an_agent() -> None:
    talk = Conversation(MemoryPolicy(max_messages=4))
    talk.session.set("name", "Ann")
    for n in range(1, 4):
        talk.working.step_results["n"] = n
        talk.working.context.append("looked up")
        agent = Agent(Script(f"a{n}"), instructions="Be brief.")
        talk.end_turn((await agent.run(f"q{n}", messages=talk.messages())).messages)
        assert (talk.working.step_results, talk.working.context) == ({}, [])
    assert [message.text for message in talk.messages()] == ["Be brief.", "q2", "a2", "q3", "a3"]
    other = Conversation()
    other.restore(talk.snapshot())
    assert other.messages() == talk.messages()
    assert other.session.get("name") == "Ann"
    lean = Conversation(
        MemoryPolicy(persist_conversation=False, persist_session=False, ephemeral_context=False)
    )
    lean.restore(talk.snapshot())
    assert lean.snapshot() == ConversationSnapshot()
    lean.working.context.append("kept")
    lean.end_turn(talk.messages())
    assert lean.working.context == ["kept"]
    assert repr(lean.working) == "<WorkingMemory 0 results, 1 in context>"
