"""Runs of agents that act as somebody, as a table: they join `feature_scenarios.FEATURES`."""

from __future__ import annotations

from typing import Any

from flyball import Agent, RunContext, tool
from flyball.identity import ActsAs, AgentIdentity, MemoryProvider, RequireCapabilities
from flyball.identity.keys import SigningKey
from flyball.identity.subjects import capability_credential
from flyball.inference.answers import tool_call as call
from tests.orchestrate.models import Script
from tests.orchestrate.scenario import Scenario

KEY = SigningKey(bytes(32))
CLERK = AgentIdentity(
    did=KEY.did,
    display_name="clerk",
    credentials=(capability_credential("urn:1", KEY.did, KEY.did, "vault.open", issued=1.0),),
    created=1.0,
    updated=1.0,
)
"""It says of itself that it may open the vault."""


@tool
async def whoami(ctx: RunContext[Any]) -> str:
    """Who is asking?"""
    return f"{ctx.did} {ctx.capabilities}"


@tool
async def open_vault() -> str:
    """Open the vault."""
    raise AssertionError("it is not opened for anybody")


def clerk(*answers: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(
        Script(*answers),
        tools=[whoami, open_vault],
        tool_filters=[RequireCapabilities(MemoryProvider(), {"open_vault": "vault.open"})],
        features=[ActsAs(CLERK)],
        name="clerk",
        **options,
    )


IDENTITIES = (
    Scenario(
        "acting as somebody who may not do all that it says",
        lambda: clerk([call("whoami", {}, id="a"), call("open_vault", {}, id="b")], "no"),
        "no",
    ),
    Scenario(
        "an agent that acts as somebody asks one that does",
        lambda: Agent(
            Script(call("clerk", {"prompt": "Who?"}), "done"),
            tools=[clerk(call("whoami", {}), "me").as_tool()],
            features=[ActsAs(CLERK, MemoryProvider())],
        ),
        "done",
    ),
)
