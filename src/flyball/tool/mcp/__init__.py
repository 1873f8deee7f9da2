"""Tools of MCP servers: programs that are spoken to over stdio, and services over streamable HTTP.

`MCPServer` is one server, and gives a `Toolset` of what it offers; `mcp_servers` reads them from a text or a
file, as the command line does. `selection`, `naming` and `listing` say what becomes of a listing, `content`
what becomes of a result: plain functions. `connection` has the one session of a server, and opens it again
when it was lost; `faults` makes errors of what goes wrong. `wire` has all that speaks the protocol, through
the official SDK: it is loaded with the first connection, so that nobody else pays for it.

Rules:
- a session belongs to no caller's event loop: all live in one thread, and calls come to them from any loop;
- a call that may have reached the server is never sent twice from here. Whether it may be is the tool's
  safety to say, and `flyball.tool.execute` acts on it;
- what a server says is data: it is bounded, checked, and never a template, a path or a command;
- headers and the environment are secrets: in no error, journal or repr.
"""

from flyball.tool.mcp.config import mcp_servers
from flyball.tool.mcp.options import ServerOptions
from flyball.tool.mcp.selection import unless_read_only
from flyball.tool.mcp.server import MCPServer
from flyball.tool.mcp.tool import MCPTool

__all__ = ["MCPServer", "MCPTool", "ServerOptions", "mcp_servers", "unless_read_only"]
