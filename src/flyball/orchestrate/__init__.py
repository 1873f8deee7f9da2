"""Control: the machine of a loop, the driver that runs it, agents, and the system's door.

    machine, state      what a loop owes, worked out from its events; pure
    flow_machine, flow_nodes, flow_loops, flow_state   what a flow of steps owes, as pure
    machines            both machines as one
    flow                steps, pipelines, handoffs, and the driver of a flow
    requests, facts     what a model call and a user's function are given, worked out from the state; pure
    performers          how each effect is carried out
    driver, streaming   the in-process driver
    elsewhere, followed loops that are driven elsewhere, and what is seen of them
    runtime, local      what carries loops on: the protocol, and the one of this process
    signalling, filtering   what people and filters say about a loop and its calls
    journal             where events are kept
    config, bindings    an agent's configuration, and the code behind a loop's spec
    output, schema_output   what an agent should give: a type, or a JSON Schema
    agent, runs, result what users hold
    replay, correlation a journal taken event by event, and the ids of each event
    lifecycle           phases and stages, derived from the state and from the journal
    projections         the other views of a journal: summary, course, explanation, tool calls, timeline
    catalogue, accounts loops searched, and what they used added up
    standing, provenance    how a loop stands now, and what it was begun with
    rendering           what engines make of the requests of an explanation
    contracts, system   the system's door: requests in, responses out (requesting, responding)

Rules: the machine has no I/O, no clock and no callback; the driver has no policy; whatever a user's code
decides is an event.
"""
