"""Tools: making them from functions, keeping them, and running their calls.

`@tool` makes a `FunctionTool` from a typed function; `execute` runs one call of any `Tool`; `Registry` and
`Toolset` hold tools. `protocol` is the seam: the loop knows no more of a tool than what stands there.

Rules:
- what is wrong with a tool shows when it is made, and names the tool and the parameter;
- what goes wrong in a call becomes a `ToolResult`: a failing tool is never a failing loop;
- arguments reach a function only after they were validated; wrong ones go back to the model, with the reason;
- a call that has nothing special about it costs next to nothing above the function itself;
- pydantic is loaded when the first tool is made, never by importing this package.
"""

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

__all__ = [
    "CallDeferred",
    "FilteredTool",
    "FunctionTool",
    "MAX_RESULT_BYTES",
    "ModelRetry",
    "Registry",
    "RenamedTool",
    "Tool",
    "ToolAvailability",
    "ToolOptions",
    "ToolPolicy",
    "Toolset",
    "WrappedTool",
    "as_tool",
    "availability",
    "execute",
    "tool",
]
