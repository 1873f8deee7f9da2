"""The MCP adapter: agents, and their tools, for MCP clients: `flyball mcp serve`; `flyball serve` at /mcp.

    offering    what is offered: a tool for each agent, and on request its own tools; naming makes names fit
    arguments   what a client asked of an agent, and the request that it becomes
    calling     one call, from its arguments to its result
    running     a run that a client waits for: progress, approvals, cancelling
    client      who called: what it can be told and asked
    watching    what happens in a run meanwhile, and in those under it
    approving   a call that waits for a person, as a question to the client's user
    results     responses and errors, as results of tools
    resources   what is recorded, as resources
    server      all of it as a server of the official SDK's, for one service
    stdio, mount    that server over a process's own streams, and as an application behind an HTTP server

Rules: an adapter translates and nothing else: a call becomes one call of a `Service`. What goes wrong in a
run is a result that says so, with the taxonomy's code, for the model that called to read; only what no run
was begun for (a tool that there is not, arguments that are none) is an error of the protocol. A run belongs
to nobody who waits for it; who cancels its call cancels it; a server that ends leaves it as it is recorded.
"""
