"""Flows: agents and functions put together into steps that survive a crash. Their machine is `flow_machine`.

    steps           AgentStep, TransformStep, ParallelSteps, ConditionalStep, RedundantSteps, Pipeline
    handing         chain and Handoff: agents one after the other, as steps like any others
    filters         what of a conversation is handed on
    leaves          what is run: an agent, a function, a test
    parts           what a driver knows of a step; where in a flow it stands, and what its outputs are read as
    functions, values   what a user's function takes and gives; how that is written down and read back
    doing           what a step is run with: its context, the loops that it begins
    driver          runs what a flow owes, on asyncio, and records what comes back
    watched         the same, for flows that somebody watches
    running, result what `run` takes and gives

Rules: what a step is given is what was recorded, so that a resumed flow sees what the first one saw; a step
that has ended is never run again; what is run as a loop stands in the same journal, under the flow; a user's
function is called inside a step and nowhere else.
"""
