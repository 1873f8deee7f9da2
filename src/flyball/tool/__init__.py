"""Tools: making them from functions, keeping them, and running their calls.

`@tool` makes a `FunctionTool` from a typed function, `stateful` tools from a class whose objects remember;
`execute` runs one call of any `Tool`; `Registry` and `Toolset` hold tools. `protocol` is the seam: the loop
knows no more of a tool than what stands there. `wrapped` has what is put around tools, `mcp` the tools of MCP
servers.

Rules:
- what is wrong with a tool shows when it is made, and names the tool and the parameter;
- what goes wrong in a call becomes a `ToolResult`: a failing tool is never a failing loop;
- arguments reach a function only after they were validated; wrong ones go back to the model, with the reason;
- a call that has nothing special about it costs next to nothing above the function itself;
- pydantic is loaded when the first tool is made, never by importing this package.
"""

from typing import TYPE_CHECKING, Any

from flyball.tool.availability import ToolAvailability, availability
from flyball.tool.decorator import as_tool, tool
from flyball.tool.errors import CallDeferred, ModelRetry
from flyball.tool.execute import MAX_RESULT_BYTES, execute
from flyball.tool.function_tool import FunctionTool
from flyball.tool.options import ToolOptions, ToolPolicy
from flyball.tool.protocol import Tool
from flyball.tool.registry import Registry
from flyball.tool.toolset import Toolset
from flyball.tool.wrapped import FilteredTool, RenamedTool, WrappedTool

if TYPE_CHECKING:
    from flyball.tool.mcp import MCPServer, mcp_servers
    from flyball.tool.preparing import ToolsPrepare
    from flyball.tool.stateful_tool import MAX_STATE_BYTES, Stateful, StatefulTool, stateful
    from flyball.tool.timing import DefaultToolTimeout
    from flyball.tool.truncation import ToolOutputTruncation, truncate_tool_output
    from flyball.tool.validating import ToolResultValidator

_LATER = {
    "DefaultToolTimeout": "timing",
    "MCPServer": "mcp",
    "MAX_STATE_BYTES": "stateful_tool",
    "Stateful": "stateful_tool",
    "StatefulTool": "stateful_tool",
    "ToolOutputTruncation": "truncation",
    "ToolResultValidator": "validating",
    "ToolsPrepare": "preparing",
    "mcp_servers": "mcp",
    "stateful": "stateful_tool",
    "truncate_tool_output": "truncation",
}
"""What not every program with tools needs, and where it is."""

__all__ = [
    "CallDeferred",
    "DefaultToolTimeout",
    "FilteredTool",
    "FunctionTool",
    "MAX_RESULT_BYTES",
    "MAX_STATE_BYTES",
    "MCPServer",
    "ModelRetry",
    "Registry",
    "RenamedTool",
    "Stateful",
    "StatefulTool",
    "Tool",
    "ToolAvailability",
    "ToolOptions",
    "ToolOutputTruncation",
    "ToolPolicy",
    "ToolResultValidator",
    "ToolsPrepare",
    "Toolset",
    "WrappedTool",
    "as_tool",
    "availability",
    "execute",
    "mcp_servers",
    "stateful",
    "tool",
    "truncate_tool_output",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'flyball.tool' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"flyball.tool.{_LATER[name]}"), name)
