"""Identities of loops: recorded as they begin, handed on to loops under them, and asked for by tools."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from flyball import Agent, AgentStep, MemoryJournal, RunContext, TransformStep, tool
from flyball.core.deps import Deps
from flyball.core.errors import UserError
from flyball.core.events import CallsJudged, Event, FlowStarted, Forked, Started, Verdict
from flyball.core.messages import ResultKind, ToolCall, user
from flyball.core.signals import Signal, SignalType
from flyball.core.spec import LoopSpec
from flyball.identity import (
    ActsAs,
    AgentIdentity,
    MemoryProvider,
    Problem,
    RequireCapabilities,
    VerifiableCredential,
    verify_chain,
)
from flyball.identity.credential import DELEGATION
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.contracts import Mode, SystemRequest
from flyball.orchestrate.driver import Drive
from flyball.orchestrate.editing import editor_loop
from flyball.orchestrate.flow.doing import StepContext
from flyball.orchestrate.flow_machine import fold as flow_fold
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.machine import fold
from flyball.orchestrate.projections.loop_entity import loop_entity
from flyball.orchestrate.projections.summary import summary_of
from flyball.orchestrate.recorded import send_signal
from flyball.orchestrate.system import System
from flyball.testing.clock import FakeClock
from tests.orchestrate.conftest import Runner
from tests.orchestrate.models import Script

READ, WRITE = "payments.read", "payments.write"


class Counted(MemoryProvider):
    """A provider that counts what it is asked for."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.issued: list[str] = []

    async def issue(self, *args: Any, **options: Any) -> VerifiableCredential:
        credential = await super().issue(*args, **options)
        if credential.has_type(DELEGATION):
            self.issued.append(credential.id)
        return credential


@tool
async def pay(ctx: RunContext[Any], amount: int) -> str:
    """Pay."""
    return f"paid {amount} as {ctx.did} with {','.join(ctx.capabilities)}"


@tool
async def look() -> str:
    """Look."""
    return "seen"


PAY = call("pay", {"amount": 5})


async def clerk(provider: MemoryProvider, *answers: Any, **options: Any) -> Agent[Any, Any]:
    """An agent that has no capability of its own, and takes two."""
    identity = await provider.create("clerk")
    acting = ActsAs(identity, provider, takes=options.pop("takes", (READ, WRITE)))
    return Agent(Script(*(answers or (PAY, "paid"))), tools=[pay], name="clerk", features=[acting], **options)


async def boss(
    provider: MemoryProvider, below: Agent[Any, Any], *held: str, **options: Any
) -> tuple[AgentIdentity, Agent[Any, Any]]:
    """An agent that asks another one."""
    identity = await provider.create("boss", capabilities=held or (WRITE, "town.enter"))
    ask = call("clerk", {"prompt": "Pay."})
    acting = ActsAs(identity, provider, **options)
    return identity, Agent(Script(ask, "done"), tools=[below.as_tool()], name="boss", features=[acting])


async def below(journal: Journal, loop_id: str) -> list[Event]:
    child = fold(await journal.read(loop_id)).children[0]
    return await journal.read(child)


def acts_as(events: list[Event]) -> AgentIdentity:
    first = events[0]
    assert isinstance(first, Started)
    identity = AgentIdentity.recorded(first.identity)
    assert identity is not None
    return identity


def verdicts(events: list[Event]) -> list[Verdict]:
    return [one for event in events if isinstance(event, CallsJudged) for one in event.verdicts]


# On a loop


async def test_it_is_recorded_as_semstreams_has_it_and_told_to_tools(run: Runner) -> None:
    provider = MemoryProvider()
    identity = await provider.create("clerk", role="editor", capabilities=[READ, WRITE])
    agent = Agent(Script(PAY, "ok"), tools=[pay], features=[ActsAs(identity)])
    result = await run(agent, "go")
    events = await result.events()
    assert acts_as(events) == identity
    assert loop_entity(events).identity == identity.write()
    assert (await summary_of(result.journal, result.loop_id)).did == str(identity.did)
    told = [found.content for message in result.messages for found in message.tool_results]
    assert told == [f"paid 5 as {identity.did} with {READ},{WRITE}"]


async def test_functions_beside_the_loop_are_told_too() -> None:
    identity = await MemoryProvider().create("clerk", capabilities=[READ])
    told = list[Any]()

    def note(ctx: RunContext[Any]) -> str:
        told.append((ctx.did, ctx.capabilities, AgentIdentity.recorded(ctx.identity)))
        return ""

    await Agent(Script("a", "b"), instructions=[note], features=[ActsAs(identity)]).run("go")
    await Agent(Script("a"), instructions=[note]).run("go")
    assert told == [(str(identity.did), (READ,), identity), ("", (), None)]


def test_a_beginning_without_one_is_written_as_before() -> None:
    written = msgspec.json.decode(msgspec.json.encode(Started(0.0, 1, "l", LoopSpec())))
    assert "identity" not in written


async def test_a_loop_keeps_the_identity_that_it_was_begun_with() -> None:
    provider, journal = MemoryProvider(), MemoryJournal()
    first, second = await provider.create("first"), await provider.create("second")
    agent = Agent(Script(PAY, "ok"), tools=[pay], features=[ActsAs(first)], name="one")
    bindings, started, clock = await agent.beginning("go", {"loop_id": "l", "journal": journal})
    await Drive.begin(bindings, journal, started, clock)
    other = agent.clone(features=[ActsAs(second)])
    result = await other.run("go", journal=journal, loop_id="l")
    assert str(first.did) in str(result.messages)
    assert acts_as(await journal.read("l")) == first


async def test_a_fork_acts_as_who_forks_it() -> None:
    provider, journal = MemoryProvider(), MemoryJournal()
    first, second = await provider.create("first"), await provider.create("second")
    agent = Agent(Script("one"), features=[ActsAs(first)], name="one")
    await agent.run("go", journal=journal, loop_id="l")
    for new, features in [("a", [ActsAs(second)]), ("b", [])]:
        other = agent.clone(features=features, model=Script("two"))
        await other.fork("l", journal, turn=0, new_loop_id=new)
        events = await journal.read(new)
        assert any(isinstance(event, Forked) for event in events)
        wanted = second.write() if features else None
        assert fold(events).identity == loop_entity(events).identity == wanted


async def test_an_agent_acts_as_one() -> None:
    identity = await MemoryProvider().create("clerk")
    with pytest.raises(UserError, match="one identity"):
        await Agent(Script("x"), features=[ActsAs(identity), ActsAs(identity)]).run("go")
    with pytest.raises(UserError, match="AgentIdentity"):
        ActsAs("did:key:x")  # pyright: ignore[reportArgumentType]
    with pytest.raises(UserError, match="several"):
        ActsAs(identity, takes=READ)


# Handing on


async def test_a_child_is_handed_what_it_takes_and_its_parent_holds(run: Runner) -> None:
    provider = Counted()
    below_it = await clerk(provider)
    identity, agent = await boss(provider, below_it)
    result = await run(agent, "go")
    child = await below(result.journal, result.loop_id)
    handed = acts_as(child)
    acting = below_it.bindings().acting
    assert acting is not None
    assert handed.did == acting.identity.did
    assert len(set(provider.issued)) == 1
    credential = handed.get_credential(provider.issued[0])
    assert credential is not None
    assert credential.issuer == str(identity.did)
    assert (await verify_chain(handed, provider)).granted == (WRITE,)
    assert loop_entity(child).identity == handed.write()


async def test_no_more_is_handed_on_than_is_given() -> None:
    provider, journal = Counted(), MemoryJournal()
    _, agent = await boss(provider, await clerk(provider), READ, WRITE, gives=[READ])
    await agent.run("go", journal=journal, loop_id="l")
    assert acts_as(await below(journal, "l")).capabilities(2e9) == (READ,)


@pytest.mark.parametrize(
    ("held", "options", "takes"),
    [((READ,), {}, (WRITE,)), ((READ,), {"gives": []}, (READ,)), ((READ,), {}, ())],
    ids=["not held", "not given", "not taken"],
)
async def test_where_nothing_is_handed_on_a_child_acts_as_itself(
    held: tuple[str, ...], options: dict[str, Any], takes: tuple[str, ...]
) -> None:
    provider, journal = Counted(), MemoryJournal()
    _, agent = await boss(provider, await clerk(provider, takes=takes), *held, **options)
    await agent.run("go", journal=journal, loop_id="l")
    assert acts_as(await below(journal, "l")).credentials == ()
    assert provider.issued == []


async def test_it_goes_on_down_the_tree_and_lasts_no_longer_than_above() -> None:
    clock = FakeClock()
    provider, journal = Counted(now=clock.now), MemoryJournal()
    until = clock.now() + 60
    last = await clerk(provider)
    middle = Agent(
        Script(call("clerk", {"prompt": "Pay."}), "ok"),
        tools=[last.as_tool()],
        name="clerk",
        features=[ActsAs(await provider.create("middle"), provider, takes=[READ, WRITE])],
    )
    top = await provider.create("top", capabilities=[WRITE], expires=until)
    agent = Agent(
        Script(call("clerk", {"prompt": "Pay."}), "done"),
        tools=[middle.as_tool()],
        features=[ActsAs(top, provider)],
    )
    await agent.run("go", journal=journal, loop_id="l", clock=clock)
    first = await below(journal, "l")
    lowest = acts_as(await below(journal, fold(first).loop_id))
    assert (await verify_chain(lowest, provider)).granted == (WRITE,)
    assert len(lowest.chain) == 2
    assert [one.expires_at for one in (*lowest.credentials, *lowest.chain)] == [until] * 3
    await provider.revoke(top.credentials[0].id)
    assert (await verify_chain(lowest, provider)).on(WRITE).problem is Problem.REVOKED


async def test_what_was_handed_on_is_not_issued_again() -> None:
    provider, journal = Counted(), MemoryJournal()
    _, agent = await boss(provider, await clerk(provider))
    await agent.run("go", journal=journal, loop_id="l")
    assert len(provider.issued) == 1
    whole, child = await journal.read("l"), await below(journal, "l")
    await agent.replay("l", journal)
    # Cut off wherever it may be: with the child begun, its call is run again and finds it.
    for length in range(1, len(whole)):
        cut = MemoryJournal()
        await cut.append("l", whole[:length], 0)
        if any(event.__class__.__name__ == "ChildStarted" for event in whole[:length]):
            await cut.append(fold(child).loop_id, child[:1], 0)
            await agent.resume("l", cut)
            assert len(provider.issued) == 1
            assert acts_as(await below(cut, "l")) == acts_as(child)
    # Before it is begun it is issued, once more asked for and the same.
    cut = MemoryJournal()
    await cut.append("l", whole[:1], 0)
    await agent.resume("l", cut)
    assert len(set(provider.issued)) == 1


async def test_an_editor_is_handed_it_too(run: Runner) -> None:
    provider = Counted()
    editor = await clerk(provider, "edited", takes=[WRITE])
    top = await provider.create("architect", capabilities=[WRITE, READ])
    agent = Agent(Script("a plan"), name="architect", editor=editor, features=[ActsAs(top, provider)])
    result = await run(agent, "go")
    handed = acts_as(await result.journal.read(editor_loop(result.loop_id)))
    assert (await verify_chain(handed, provider)).granted == (WRITE,)
    assert len(set(provider.issued)) == 1


# In flows


def flow_acts_as(events: list[Event]) -> AgentIdentity | None:
    first = events[0]
    assert isinstance(first, FlowStarted)
    return AgentIdentity.recorded(first.identity)


async def test_a_flow_hands_on_to_its_agents() -> None:
    provider, journal = Counted(), MemoryJournal()
    top = await provider.create("top", capabilities=[WRITE])
    seen: list[str] = []

    async def asks(ctx: StepContext[Any], given: str) -> str:
        seen.append(ctx.did)
        return (await ctx.run(await clerk(provider), given)).output

    flow = AgentStep(await clerk(provider), name="first").then(TransformStep(asks))
    await flow.run("go", journal=journal, loop_id="f", features=[ActsAs(top, provider)])
    assert seen == [str(top.did)]
    events = await journal.read("f")
    assert flow_acts_as(events) == top
    assert (await summary_of(journal, "f")).did == str(top.did)
    children = flow_fold(events).children
    assert len(children) == 2
    for child in children:
        assert (await verify_chain(acts_as(await journal.read(child)), provider)).granted == (WRITE,)
    # What is over is told by what is recorded.
    issued = len(provider.issued)
    await flow.run("go", journal=journal, loop_id="f", features=[ActsAs(top, provider)])
    assert len(provider.issued) == issued == 2


async def test_a_flow_that_a_run_begins_acts_as_that_run() -> None:
    provider, journal = Counted(), MemoryJournal()
    below_it = await clerk(provider)

    @tool
    async def work(ctx: RunContext[Any]) -> str:
        """Work."""
        return (await AgentStep(below_it).run("Pay.", parent=ctx)).output

    top = await provider.create("top", capabilities=[WRITE])
    agent = Agent(Script(call("work", {}), "done"), tools=[work], features=[ActsAs(top, provider)])
    await agent.run("go", journal=journal, loop_id="l")
    flow = await below(journal, "l")
    assert flow_acts_as(flow) == top
    (child,) = flow_fold(flow).children
    assert (await verify_chain(acts_as(await journal.read(child)), provider)).granted == (WRITE,)
    assert len(provider.issued) == 1


async def test_a_flow_with_an_identity_of_its_own_is_handed_what_it_takes() -> None:
    provider, journal = Counted(), MemoryJournal()
    own = ActsAs(await provider.create("flow"), provider, takes=[WRITE])
    below_it = await clerk(provider)

    @tool
    async def work(ctx: RunContext[Any]) -> str:
        """Work."""
        return (await AgentStep(below_it).run("Pay.", parent=ctx, features=[own])).output

    top = await provider.create("top", capabilities=[WRITE, READ])
    agent = Agent(Script(call("work", {}), "done"), tools=[work], features=[ActsAs(top, provider)])
    await agent.run("go", journal=journal, loop_id="l")
    flow = await below(journal, "l")
    handed = flow_acts_as(flow)
    assert handed is not None
    assert handed.did == own.identity.did
    assert (await verify_chain(handed, provider)).granted == (WRITE,)
    (child,) = flow_fold(flow).children
    lowest = acts_as(await journal.read(child))
    assert (await verify_chain(lowest, provider)).granted == (WRITE,)
    await provider.revoke(top.credentials[0].id)
    assert (await verify_chain(lowest, provider)).on(WRITE).problem is Problem.REVOKED


async def test_a_flow_takes_no_other_features() -> None:
    step = AgentStep(Agent(Script("ok")))
    with pytest.raises(UserError, match="and ActsAs"):
        await step.run("go", features=[Deps(3)])


@pytest.mark.parametrize("held", [WRITE, READ])
async def test_plans_run_tools_by_the_agents_filters_and_as_the_agent(held: str) -> None:
    """Whoever sends a plan, or makes one, may have no tool run that the agent itself may not."""
    provider = MemoryProvider()
    identity = await provider.create("a", capabilities=[held])
    agent = Agent(
        Script(),
        tools=[pay],
        tool_filters=[RequireCapabilities(provider, {"pay": WRITE})],
        features=[ActsAs(identity, provider)],
    )
    steps = [{"name": "pays", "type": "tool", "input": {"name": "pay", "arguments": {"amount": 5}}}]
    asked = SystemRequest(messages=(user("Pay."),), mode=Mode.PLAN, plan={"steps": steps})
    response = await System(agent).handle(asked)
    if held == WRITE:
        assert response.content == f"paid 5 as {identity.did} with {WRITE}"
    else:
        assert response.error is not None
        assert response.error.code == "VALIDATION_RULE_FAILED"
        assert f"needs the capability '{WRITE}'" in response.error.message


# What tools ask for


async def test_a_call_runs_only_with_the_capability(run: Runner) -> None:
    provider = MemoryProvider()
    needs = RequireCapabilities(provider, {"pay": WRITE, "look": ()})
    may, may_not = (
        await provider.create("a", capabilities=[WRITE]),
        await provider.create("b", capabilities=[READ]),
    )
    both: list[ToolCall] = [PAY, call("look", {})]
    for identity in (may, may_not, None):
        features = [] if identity is None else [ActsAs(identity)]
        agent = Agent(Script(both, "ok"), tools=[pay, look], tool_filters=[needs], features=features)
        result = await run(agent, "go")
        first, second = verdicts(await result.events())
        assert first.allowed is (identity is may)
        assert second.allowed
        answers = [found for message in result.messages for found in message.tool_results]
        assert ("paid 5" in str(answers[0].content)) is (identity is may)
        if identity is not may:
            assert first.by == "RequireCapabilities"
            assert first.reason in str(answers[0].error)
            assert f"needs the capability '{WRITE}'" in first.reason
            assert "not_held" in first.reason


async def test_what_is_revoked_or_expires_between_two_turns_is_refused() -> None:
    clock = FakeClock()
    provider = MemoryProvider(now=clock.now)
    needs = RequireCapabilities(provider, {"pay": [READ, WRITE]})

    async def run(happening: str) -> list[Verdict]:
        identity = await provider.create("a", capabilities=[READ, WRITE], expires=clock.now() + 10)

        @tool
        async def wait() -> str:
            """Wait."""
            if happening == "revoked":
                await provider.revoke(identity.credentials[1].id)
            if happening == "expired":
                await clock.advance(11)
            return "ok"

        model = Script(PAY, call("wait", {}, id="w"), call("pay", {"amount": 5}, id="again"), "ok")
        agent = Agent(model, tools=[pay, wait], tool_filters=[needs], features=[ActsAs(identity)])
        return verdicts(await (await agent.run("go", clock=clock)).events())

    assert [one.allowed for one in await run("nothing")] == [True, True, True]
    for happening in ("revoked", "expired"):
        found = await run(happening)
        assert [one.allowed for one in found] == [True, True, False]
        assert happening in found[-1].reason


async def test_what_is_revoked_while_a_call_is_approved_runs_no_more(run: Runner) -> None:
    provider = MemoryProvider()
    identity = await provider.create("a", capabilities=[WRITE])

    @tool(name="pay", approval=True)
    async def asks(amount: int) -> str:
        """Pay."""
        raise AssertionError("it may not be run")

    async def approve(ctx: RunContext[Any], asked: ToolCall) -> bool:
        await provider.revoke(identity.credentials[0].id)
        return True

    needs = RequireCapabilities(provider, {"pay": WRITE})
    agent = Agent(
        Script(PAY, "ok"), tools=[asks], tool_filters=[needs], approval=approve, features=[ActsAs(identity)]
    )
    result = await run(agent, "go")
    (answer,) = [found for message in result.messages for found in message.tool_results]
    assert answer.status is ResultKind.DENIED
    assert answer.text.startswith("The call was not allowed: pay needs the capability")
    assert "revoked" in answer.text


@pytest.mark.parametrize("revoked", [False, True])
async def test_what_is_revoked_while_a_call_waits_runs_no_more(*, revoked: bool) -> None:
    provider, journal = MemoryProvider(), MemoryJournal()
    identity = await provider.create("a", capabilities=[WRITE])

    @tool(name="pay", approval=True)
    async def asks(ctx: RunContext[Any], amount: int) -> str:
        """Pay."""
        return f"paid {amount} as {ctx.did}"

    agent = Agent(
        Script(PAY, "ok"),
        tools=[asks],
        tool_filters=[RequireCapabilities(provider, {"pay": WRITE})],
        features=[ActsAs(identity)],
    )
    task = asyncio.create_task(agent.run("go", journal=journal, loop_id="one"))
    await journal.wait("one", 2)  # Started, ModelAnswered, CallsJudged: now it waits
    if revoked:
        await provider.revoke(identity.credentials[0].id)
    await send_signal(journal, "one", Signal(SignalType.APPROVE))
    (answer,) = [found for message in (await task).messages for found in message.tool_results]
    if revoked:
        assert (answer.status, "was revoked" in answer.text) == (ResultKind.DENIED, True)
    else:
        assert answer.content == f"paid 5 as {identity.did}"


async def test_a_child_may_do_what_was_handed_on_to_it_and_nothing_else() -> None:
    provider, journal = MemoryProvider(), MemoryJournal()
    for held, may in [((WRITE,), True), ((READ,), False)]:
        needs = RequireCapabilities(provider, {"pay": WRITE})
        _, agent = await boss(provider, await clerk(provider, tool_filters=[needs]), *held)
        result = await agent.run("go", journal=journal)
        (verdict,) = verdicts(await below(journal, result.loop_id))
        assert verdict.allowed is may


async def test_what_somebody_made_up_is_refused() -> None:
    provider, forger = MemoryProvider(), MemoryProvider()
    identity = await forger.create("a", capabilities=[WRITE])
    needs = RequireCapabilities(provider, {"pay": WRITE})
    agent = Agent(Script(PAY, "ok"), tools=[pay], tool_filters=[needs], features=[ActsAs(identity)])
    (verdict,) = verdicts(await (await agent.run("go")).events())
    assert "unknown_issuer" in verdict.reason
    with pytest.raises(UserError, match="by tools"):
        RequireCapabilities(provider, [WRITE])  # pyright: ignore[reportArgumentType]
