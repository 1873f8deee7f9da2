"""Telling: what a person is told of a loop, worked out from its journal alone. Pure.

    text      stream            a piece of an answer that is not finished, where nobody looks at answers first
    calls     status            the model asks for a tool; for channels that want to hear of it
    waits     prompt            a call, or the answer, wants to be approved: what it is, and two actions
              status            the answer does, for who may not approve it; who may is asked (`review`)
              status            paused, resumed, a call waits for its result, tried again
    end       result            the answer, with its blocks
              error, status     why there is none; that it was cancelled

Each response but the pieces has an id that follows from the loop and the event's number: whoever tells it
twice, after a crash, says the same thing under the same id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256

from msgspec.structs import replace

from flyball.core.errors import JournalCorrupt
from flyball.core.events import (
    AnswerReviewed,
    Ended,
    Event,
    FlowStarted,
    ModelAnswered,
    Outcome,
    Reopened,
    SignalReceived,
    Stage,
    Started,
)
from flyball.core.forms.semstreams import (
    BlockType,
    ResponseAction,
    ResponseBlock,
    ResponseType,
    UserResponse,
    UserSignal,
)
from flyball.core.messages import Message, Role
from flyball.core.signals import Signal, SignalType
from flyball.inference.stream import Finish, Restart, StreamEvent
from flyball.inference.text import text_in
from flyball.orchestrate.approvals import answer_so_far
from flyball.orchestrate.calls import answer_id, waits_for_results
from flyball.orchestrate.channels.address import Address
from flyball.orchestrate.channels.blocks import blocks_of
from flyball.orchestrate.commands import call_to_run
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.followed import Recorded
from flyball.orchestrate.machines import AnyState, fold, start, take
from flyball.orchestrate.machines import stage as stage_of
from flyball.orchestrate.projections.summary import answer_of
from flyball.orchestrate.state import State

_DIGITS = 12
_ANSWER = re.compile(rf"/(?P<number>[0-9]+)/answer(?:/[0-9a-f]{{{_DIGITS}}})?\Z")
_ACTIONS = ((SignalType.APPROVE, "Approve", "primary"), (SignalType.REJECT, "Reject", "danger"))


class Telling:
    """One loop, as far as somebody was told of it.

    Args:
        address: whom to tell.
        within: the loop stands under another, whose end is told: of this one only what waits for somebody.
        calls: whether each tool is told of that the model asks for, in a block of the type `progress`.
        may_approve: who is told may approve answers. Others are shown one once it is approved.
        since: nothing is told to have happened before. Nor is anything before what came before it in the
            journal, whatever the clock said of who recorded it.
    """

    def __init__(
        self,
        address: Address,
        *,
        within: bool = False,
        calls: bool = False,
        may_approve: bool = True,
        since: float = 0.0,
    ) -> None:
        self._may_approve = may_approve
        self._address = address
        self._within = within
        self._calls = calls
        self._state: AnyState | None = None
        self._number = 0
        self._at = since
        self._pieces = 0
        self._begun: set[int] = set()
        """The parts of the answer under way that text has come of."""
        self._asked: frozenset[str] = frozenset()
        """The calls that were asked about, and still wait."""
        self._to_review = False

    def take(self, one: Recorded | StreamEvent) -> list[UserResponse]:
        """What is to be told of what has happened, in the order in which it happened.

        Raises:
            JournalCorrupt: an event does not fit.
        """
        if isinstance(one, Recorded):
            return self._recorded(one.number, one.event)
        return [] if self._within else self._piece(one)

    @property
    def number(self) -> int:
        """The number of the last event that was taken."""
        return self._number

    @property
    def at(self) -> float:
        """When that happened: never before what came before it in the journal."""
        return self._at

    @property
    def rests(self) -> bool:
        """Whether nothing happens by itself any more: it is over, or waits for somebody."""
        return self._state is not None and at_rest(self._state)

    @property
    def to_review(self) -> bool:
        """Whether the last event that was taken has an answer wait that who is told may not approve."""
        return self._to_review

    def review(self, reviewer: str) -> UserResponse:
        """What somebody else, who may approve the answer that waits, is asked at the same place."""
        assert isinstance(self._state, State), "an agent's answer waits"
        assert self._to_review, "there is one"
        known_as = sha256(reviewer.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
        return replace(self._ask_about(self._state, f"answer/{known_as}"), user_id=reviewer)

    def _piece(self, piece: StreamEvent) -> list[UserResponse]:
        if isinstance(piece, Finish | Restart):
            self._begun.clear()
            begins = isinstance(piece, Restart)
            return [self._passing(ResponseType.STATUS, "the answer begins anew")] if begins else []
        text = text_in(piece, self._begun)
        self._begun.add(piece.index)
        if self._is_reviewed or self._is_held:
            return []
        return [self._passing(ResponseType.STREAM, text)] if text else []

    @property
    def _is_reviewed(self) -> bool:
        """Whether interceptors or conditions look at answers first, which may change or drop them."""
        return isinstance(self._state, State) and self._state.spec.reviews

    @property
    def _is_held(self) -> bool:
        """Whether answers are not to be shown before they are approved."""
        state = self._state
        return isinstance(state, State) and state.spec.output.approval and not self._may_approve

    def _passing(self, kind: ResponseType, text: str) -> UserResponse:
        """Something that is told in passing: it is in no journal, and its id is good for now alone."""
        self._pieces += 1
        return self._say(kind, text, f"{self._number}/piece/{self._pieces}")

    def _recorded(self, number: int, event: Event) -> list[UserResponse]:
        if self._state is None:
            assert isinstance(event, Started | FlowStarted), "a journal begins so"
            self._state = start(event)
        elif not take(self._state, event):
            raise JournalCorrupt(
                f"loop {self._state.loop_id!r}: event {number}, {type(event).__name__}, does not fit",
                loop_id=self._state.loop_id,
            )
        self._number, self._at = number, max(self._at, event.at)
        said = self._prompts(self._state)
        if self._within:
            return said
        if self._calls and (answer := self._answer_taken(self._state, event)) is not None:
            said = [*self._asked_for(self._state, answer), *said]
        if isinstance(event, SignalReceived) and event.signal.type in _TOLD:
            by = f" by {event.signal.by}" if event.signal.by else ""
            said.append(self._say(ResponseType.STATUS, f"{_TOLD[event.signal.type]}{by}", str(number)))
        elif isinstance(event, Reopened):
            said.append(self._say(ResponseType.STATUS, "it is tried again", str(number)))
        elif isinstance(event, Ended):
            said.append(self._end(self._state, event, number))
        return said

    def _answer_taken(self, state: AnyState, event: Event) -> Message | None:
        """The answer that an event has the loop go on from, once nobody looks at it any more."""
        if isinstance(event, ModelAnswered) and event.purpose == "turn" and not self._is_reviewed:
            return event.message
        if isinstance(event, AnswerReviewed) and not (event.dropped or event.stop or event.error):
            return event.message or _last_message(state)
        return None

    def _asked_for(self, state: AnyState, answer: Message) -> list[UserResponse]:
        """The tools that the model asks for; not those by which it only gives its output.

        The first of them has what the model said before, for who came too late to hear it in pieces.
        """
        outputs = [one.name for one in state.spec.output.tools] if isinstance(state, State) else []
        calls = [call for call in answer.tool_calls if call.name not in outputs]
        said: list[UserResponse] = []
        for index, call in enumerate(calls):
            blocks = [ResponseBlock(type=str(BlockType.PROGRESS), content=call.name)]
            if not index and answer.text and not self._is_held:
                blocks.insert(0, ResponseBlock(type=str(BlockType.TEXT), content=answer.text))
            name = f"{self._number}/asked/{index}"
            said.append(self._say(ResponseType.STATUS, f"{call.name} {call.args_json}", name, blocks))
        return said

    def _prompts(self, state: AnyState) -> list[UserResponse]:
        """What is asked of the person since the last event."""
        if isinstance(state, FlowState):
            return []
        waiting = {state.calls[index].id: index for index in (*state.awaiting, *state.deferred)}
        if state.at == "approve":
            waiting[answer_id(state)] = -1
        new, self._asked = [call for call in waiting if call not in self._asked], frozenset(waiting)
        self._to_review = not self._may_approve and any(waiting[call] < 0 for call in new)
        return [self._prompt(state, waiting[call]) for call in new]

    def _prompt(self, state: State, index: int) -> UserResponse:
        if index < 0 and not self._may_approve:
            said = (
                f"an answer of {state.spec.agent} ({answer_id(state)}) waits for somebody who may approve it"
            )
            return self._say(ResponseType.STATUS, said, f"{self._number}/answer")
        if index < 0:
            return self._ask_about(state, "answer")
        call = call_to_run(state, index)
        name = f"call/{index}"
        arguments = ResponseBlock(type=str(BlockType.CODE), content=call.args_json, lang="json")
        if index in state.deferred:
            said = f"{call.name} waits for its result (call {call.id})"
            return self._say(ResponseType.STATUS, said, f"{self._number}/{name}", [arguments])
        said = f"{state.spec.agent} wants to run {call.name} (call {call.id}): may it?"
        return self._decide(said, call.id, name, [arguments])

    def _ask_about(self, state: State, name: str) -> UserResponse:
        """What somebody is asked about the answer that waits."""
        answer = answer_so_far(state)
        kind = f" of the type {state.output_kind}" if state.output_kind else ""
        said = f"{state.spec.agent} has an answer{kind} ({answer_id(state)}): may it be given?"
        blocks = blocks_of(answer, _last_message(state)) or (
            ResponseBlock(type=str(BlockType.TEXT), content=answer),
        )
        return self._decide(said, answer_id(state), name, blocks)

    def _decide(self, said: str, about: str, name: str, blocks: Iterable[ResponseBlock]) -> UserResponse:
        actions = [
            ResponseAction(id=f"{kind}/{about}", type="button", label=label, signal=str(kind), style=style)
            for kind, label, style in _ACTIONS
        ]
        return self._say(ResponseType.PROMPT, said, f"{self._number}/{name}", blocks, actions)

    def _end(self, state: AnyState, event: Ended, number: int) -> UserResponse:
        name = str(number)
        if event.outcome is Outcome.SUCCESS:
            answer = answer_of(state)
            return self._say(ResponseType.RESULT, answer, name, blocks_of(answer, _last_message(state)))
        error = event.error or state.error
        why = "" if error is None else error.message
        if event.outcome is Outcome.CANCELLED:
            return self._say(
                ResponseType.STATUS,
                why if why.startswith("cancelled") else f"cancelled: {why}" if why else "cancelled",
                name,
            )
        return self._say(ResponseType.ERROR, f"{why or 'it failed'}\n{_AND_NOW}", name)

    def _say(
        self,
        kind: ResponseType,
        content: str,
        name: str,
        blocks: Iterable[ResponseBlock] = (),
        actions: Iterable[ResponseAction] = (),
    ) -> UserResponse:
        assert self._state is not None, "a loop begins before anything is told of it"
        loop_id = self._state.loop_id
        return self._address.response(
            kind, content, f"{loop_id}/{name}", self._at, in_reply_to=loop_id, blocks=blocks, actions=actions
        )


_AND_NOW = "(what comes next goes on without this: say it anew in other words, or /retry tries it again)"
_TOLD = {
    SignalType.PAUSE: "paused",
    SignalType.RESUME: "resumed",
    SignalType.APPROVE: "approved",
    SignalType.REJECT: "rejected",
}


def answer_told(response: UserResponse) -> int:
    """The number of the event since which an answer waits that a response asks about; 0 of any other."""
    found = _ANSWER.search(response.response_id) if response.type == ResponseType.PROMPT else None
    return int(found["number"]) if found is not None else 0


def waiting_since(events: Sequence[Event]) -> int:
    """The number of the event by which an answer began to wait for approval that still does; 0 if none does.

    Raises:
        JournalCorrupt: the first event is none that a loop begins with.
    """
    state, since = fold(events[:1], "a loop"), 0
    for number, event in enumerate(events[1:], 2):
        take(state, event)
        since = (since or number) if state.at == "approve" else 0
    return since


def signal_of(
    action: ResponseAction, response: UserResponse, name: str, by: str, reason: str = ""
) -> UserSignal:
    """What is said when somebody presses an action of a response: `name` is the signal's id, `by` who did.

    `reason` is what they say about it, which a model reads.
    """
    call = action.id.partition("/")[2]
    signal = Signal(SignalType(action.signal), name, by, reason, call or None)
    return UserSignal.of(
        signal,
        response.in_reply_to,
        channel_type=response.channel_type,
        channel_id=response.channel_id,
    )


def at_rest(state: AnyState) -> bool:
    """Whether nothing happens in a loop by itself: it is over, or waits for somebody."""
    waits = isinstance(state, State) and waits_for_results(state)
    return waits or state.at == "done" or stage_of(state) in (Stage.PAUSED, Stage.AWAITING_APPROVAL)


def _last_message(state: AnyState) -> Message | None:
    if isinstance(state, FlowState) or not state.history:
        return None
    last = state.history[-1]
    return last if last.role is Role.ASSISTANT else None
