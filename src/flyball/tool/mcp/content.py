"""What a server answers to a call, as a flyball tool returns it.

| MCP | the model gets |
|---|---|
| structured content | the JSON; of `{"result": ...}`, in which servers wrap what is no object, the inside |
| text | the text; several, one below the other. Not beside structured content, which says the same |
| images, and embedded ones | images |
| an embedded text | its address, and the text |
| a link to a resource | its name, its address and what is said about it |
| audio, and embedded bytes of other kinds | a line that says so: no model takes them as a tool's result |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from flyball.core.errors import ToolExecutionFailed
from flyball.core.messages import Image, ToolResult

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

_SAID_NOTHING = "the tool failed, and the server does not say why"


def returned(result: CallToolResult) -> object:
    """What a tool gives back for this answer; a ToolResult with `error` where the server says it failed."""
    said: list[str] = []
    images: list[Image] = []
    beside: list[str] = []
    for block in result.content:
        told = _read(block)
        if isinstance(told, Image):
            images.append(told)
        elif block.type == "text":
            said.append(told)
        else:
            beside.append(told)
    if result.is_error:
        return failed("\n".join([*said, *beside]) or _SAID_NOTHING)
    structured: Any = result.structured_content
    if structured is None:
        text = "\n".join([*said, *beside])
        if not images:
            return text
        return [text, *images] if text else images
    value = _unwrapped(structured)
    if beside:
        # Beside what the JSON says again: a list, as of any tool that gives several things.
        value = [value, *beside]
    return [value, *images] if images else value


def failed(text: str) -> ToolResult:
    """The result of a call that the server has answered, and that failed: the model reads why."""
    return ToolResult("", "", error=text, metadata={"code": ToolExecutionFailed.code})


def _unwrapped(structured: Any) -> Any:
    whole = cast("dict[str, Any]", structured)
    return whole["result"] if isinstance(structured, dict) and list(whole) == ["result"] else whole


def _read(block: ContentBlock) -> str | Image:
    if block.type == "text":
        return block.text
    if block.type == "image":
        return _image(block.data, block.mime_type)
    if block.type == "audio":
        return _bytes("audio", block.mime_type, block.data)
    if block.type == "resource_link":
        about = [f"{block.title or block.name}: {block.uri}"]
        if block.mime_type:
            about.append(f"({block.mime_type})")
        if block.description:
            about.append(f"- {block.description}")
        return " ".join(about)
    inside = block.resource
    kind = inside.mime_type or ""
    text: str | None = getattr(inside, "text", None)
    if text is not None:
        return f"{inside.uri}:\n{text}"
    data: str = getattr(inside, "blob", "")
    return _image(data, kind) if kind.startswith("image/") else _bytes(inside.uri, kind, data)


def _image(data: str, kind: str) -> Image:
    return Image(f"data:{kind};base64,{data}", mime_type=kind)


def _bytes(what: object, kind: str, data: str) -> str:
    size = len(data) * 3 // 4 - data[-2:].count("=")
    return f"[{what}: {size:,} bytes of {kind or 'an unknown kind'}, which cannot be shown here]"
