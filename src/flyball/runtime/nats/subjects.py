"""The subjects of the wire, which are SemStreams', and those beside it that are flyball's own.

agent.task.<task>          external → loop      a loop is wanted
agent.request.<loop>       loop → model         a model call
agent.response.<request>   model → loop         its answer
tool.execute.<tool>        loop → tools         a tool call
tool.result.<call>         tools → loop         its result
agent.signal.<loop>        external → loop      a signal: cancel, pause, resume, approve and the others
agent.timer.<loop>         the server → loop    its time has come; agent.schedule.<loop> asks for that
                           (there, timer.due.<loop> and timer.at.<loop>)
agent.created|complete|failed|cancelled.<loop>  loop → external, what became of it
agent.context.<loop>       loop → external      what was left out of its context, or summed up
agent.answered.<loop>      loop → dispatch      a loop for people goes on after a result from outside
user.message.<channel>.<id>   people → dispatch  what somebody says
user.response.<channel>.<id>  dispatch → people  what they are answered
agent.for.<kind>.<agent>   worker → worker      a message for an agent that its first receiver has not
                           (in an account of `flyball tenants`, model.for.<agent> and tool.for.<agent>)
agent.for.projector, agent.for.dispatch  an entry of a journal that was put aside, given out again
governance.violation.<severity>  loop → external  what filters found
fly.dead.<loop>.<subject>  what was put aside
fly.d.<loop>               pieces of answers, which pass by
fly.hire.<kind>            asks the loop workers for a consumer
fly.x.<loop>, fly.b.<loop> what is still owed, and what is to detach: words in passing
"""

from __future__ import annotations

from flyball.core.violation import Severity
from flyball.runtime.nats.naming import token

TASKS, REQUESTS = ("agent.task.>",), ("agent.request.>",)
SAID = ("user.message.>",)
ANSWERED = "agent.answered."
"""What the subjects begin with on which is told that a loop goes on after a result from outside."""
SIGNALS = ("agent.signal.>", "agent.timer.>")
DEAD, DEAD_SUBJECTS = "AGENT_DEAD", "fly.dead.>"
"""The stream of what was put aside, and all its subjects."""
FORWARDED = ("agent.for.", "model.for.", "tool.for.")
"""What the subjects begin with of messages that were passed on."""
READERS = ("projector", "dispatch")
"""Those who read the journals' own streams: their consumers there and on the wire."""
GOVERNANCE, GOVERNANCE_SUBJECTS = "GOVERNANCE", "governance.>"
"""The stream of violations, and all its subjects."""


def task_subject(loop_id: str) -> str:
    """Where a loop is asked for."""
    return f"agent.task.{token(loop_id)}"


def request_subject(loop_id: str) -> str:
    """Where a model call of a loop is asked for."""
    return f"agent.request.{token(loop_id)}"


def response_subject(effect: str) -> str:
    """Where a model call is answered."""
    return f"agent.response.{token(effect)}"


def execute_subject(tool: str) -> str:
    """Where calls of a tool are asked for."""
    return f"tool.execute.{token(tool)}"


def result_subject(effect: str) -> str:
    """Where a tool call is answered."""
    return f"tool.result.{token(effect)}"


def signal_subject(loop_id: str) -> str:
    """Where something is said to a loop."""
    return f"agent.signal.{token(loop_id)}"


def event_subject(what: str, loop_id: str) -> str:
    """Where it is told what became of a loop: `created`, `complete`, `failed`, `cancelled`, `context`."""
    return f"agent.{what}.{token(loop_id)}"


def violation_subject(severity: Severity) -> str:
    """Where it is told what filters found, by how bad it is."""
    return f"governance.violation.{severity.value}"


def message_subject(channel_type: str, channel_id: str) -> str:
    """Where people on a channel say something."""
    return f"user.message.{token(channel_type)}.{token(channel_id)}"


def answered_subject(loop_id: str) -> str:
    """Where is told that a loop goes on after a result from outside."""
    return f"{ANSWERED}{token(loop_id)}"


def user_response_subject(channel_type: str, channel_id: str) -> str:
    """Where people on a channel are answered."""
    return f"user.response.{token(channel_type)}.{token(channel_id)}"


def reader_subject(reader: str) -> str:
    """Where one of those who read the journals is given an entry again: see `dead.requeue`."""
    return f"agent.for.{reader}"


def dead_subjects(loop_id: str) -> str:
    """Where messages of a loop are that were put aside."""
    return f"fly.dead.{token(loop_id)}.>"


def deltas_subject(loop_id: str) -> str:
    """Where the pieces of a loop's answers pass by: nothing is kept there."""
    return f"fly.d.{token(loop_id)}"
