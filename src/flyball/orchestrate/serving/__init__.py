"""Requests that are more than one loop: plans, votes, and answers in two phases. Each is a flow.

What a request asks for is the flow's input, so a flow that is found in a journal says by itself how it is to
be gone on with: whoever has the agent, the planner and the handlers can do so.
"""

from flyball.orchestrate.serving.flows import FlowServing, Patterns

__all__ = ["FlowServing", "Patterns"]
