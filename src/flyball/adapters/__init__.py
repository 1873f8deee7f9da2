"""What users touch: each adapter turns something from outside into a SystemRequest, and a response back.

    cli     the command `flyball`
    http    an API for many callers: `flyball serve`
    mcp     agents as tools of MCP clients: `flyball mcp serve`

Rules: an adapter translates and shows, and nothing else. What decides anything stands behind the System
facade; what is read of a recorded loop is a projection of its journal. Adapters do not import each other,
nor engines.
"""
