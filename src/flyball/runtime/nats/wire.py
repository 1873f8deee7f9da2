"""Where on a server the wire is: in one stream, or apart, so that no worker can see what is another kind's.

    together   AGENT has all of it, and whoever is let in may do everything
    apart      in an account of `flyball tenants`, whose users may do only what their kind of worker does:
               AGENT          tasks, model calls, answers of models, signals, what is told of loops
               AGENT_MODELS   model calls that were passed on to those who have the agent
               AGENT_TOOLS    tool calls, those that were passed on included
               AGENT_RESULTS  results of tools
               AGENT_TIMERS   times that are to come

A permission names a stream and no part of one: who may take messages of AGENT for the tool `price`, whose
consumer may have any name, may take all of them. And what may be sent into a stream can do there what the
stream allows: have another message sent at a time (so only AGENT_TIMERS has timers), or keep one from being
taken by bearing its id (so results do not go where answers of models do).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from flyball.runtime.nats.naming import token
from flyball.runtime.nats.subjects import SIGNALS, TASKS

Kind: TypeAlias = Literal["loop", "model", "tools", "dispatch"]

AGENT, CLAIMS = "AGENT", "CLAIMS"
AGENT_MODELS, AGENT_TOOLS = "AGENT_MODELS", "AGENT_TOOLS"
AGENT_RESULTS, AGENT_TIMERS = "AGENT_RESULTS", "AGENT_TIMERS"
BLOBS = "FLYBALL_BLOBS"
"""The object store for what is too large for a message of the journal."""
WIRE_BLOBS = "FLYBALL_WIRE"
"""The one for what is too large for a message of the wire: it is kept for as long as the wire is."""
TOOL_BLOBS = "FLYBALL_WIRE_TOOLS"
"""The one for tool calls and their results, where these are apart."""
_TOOLS = "tool."
_ANSWERS, _RESULTS = ("agent.response.>",), ("tool.result.>",)


class Wire(Struct, frozen=True):
    """Where what is.

    `streams`: the subjects of each stream. `timers` is the stream that sends a message when its time has
    come: `schedule` and `due` are what the subjects begin with of asking for that, and of what is sent.
    `loop`: where loop workers have their messages from. `passed_on`: by the kind of worker, the stream and
    the beginning of the subject of messages for an agent that their first receiver has not.
    """

    streams: Mapping[str, tuple[str, ...]]
    tools: str
    timers: str
    schedule: str
    due: str
    loop: Mapping[str, tuple[str, ...]]
    passed_on: Mapping[str, tuple[str, str]]
    tool_blobs: str

    def blobs(self, subject: str) -> str:
        """The store for what is too large for a message on a subject."""
        return self.tool_blobs if subject.startswith(_TOOLS) else WIRE_BLOBS

    def for_agent(self, kind: str, agent: str) -> tuple[str, str]:
        """The stream and the subject for what an agent's workers of one kind are to do."""
        stream, subject = self.passed_on[kind]
        return stream, f"{subject}.{token(agent)}"


TOGETHER = Wire(
    {AGENT: ("agent.>", "tool.>", "user.>")},
    tools=AGENT,
    timers=AGENT,
    schedule="agent.schedule",
    due="agent.timer",
    loop={AGENT: (*TASKS, *_ANSWERS, *_RESULTS, *SIGNALS)},
    passed_on={kind: (AGENT, f"agent.for.{kind}") for kind in ("loop", "model", "tools")},
    tool_blobs=WIRE_BLOBS,
)
APART = Wire(
    {
        AGENT: ("agent.>", "user.>"),
        AGENT_MODELS: ("model.for.>",),
        AGENT_TOOLS: ("tool.execute.>", "tool.for.>"),
        AGENT_RESULTS: _RESULTS,
        AGENT_TIMERS: ("timer.>",),
    },
    tools=AGENT_TOOLS,
    timers=AGENT_TIMERS,
    schedule="timer.at",
    due="timer.due",
    loop={
        AGENT: (*TASKS, *_ANSWERS, "agent.signal.>"),
        AGENT_RESULTS: _RESULTS,
        AGENT_TIMERS: ("timer.due.>",),
    },
    passed_on={
        "loop": (AGENT, "agent.for.loop"),
        "model": (AGENT_MODELS, "model.for"),
        "tools": (AGENT_TOOLS, "tool.for"),
    },
    tool_blobs=TOOL_BLOBS,
)


def hired_for(kind: str, agent: str) -> str:
    """The consumer of an agent's workers of one kind."""
    return f"{kind}-for-{token(agent)}"


def hired_for_tool(name: str) -> str:
    """The consumer of those who host a tool."""
    return f"tool-{token(name)}"
