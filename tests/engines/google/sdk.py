"""Google's own SDK as a judge: what it takes, what it would send, and what it reads."""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec
from google.genai import Client, types
from google.genai import models as _models

from tests.engines.loopback import Loopback

SDK_WARNS = "ignore:Inheritance class AiohttpClientSession:DeprecationWarning"
"""What the SDK does that aiohttp would rather it did not."""

_CLIENTS: dict[bool, Client] = {}
_OPAQUE = ("args", "response", "parametersJsonSchema", "responseJsonSchema")
"""What is the user's own, and is not Google's to spell."""
_BYTES = ("data", "thoughtSignature")


async def asked(
    server: Loopback, contents: Any, config: types.GenerateContentConfig | None = None, *, streamed: bool
) -> list[types.GenerateContentResponse]:
    """What the SDK reads when it asks a server of ours: whole, or chunk by chunk."""
    options = types.HttpOptions(base_url=server.url, api_version="v1beta")
    client: Any = Client(vertexai=False, api_key="the-key", http_options=options).aio
    asking = {"model": "gemini-3.8-flash", "contents": contents, "config": config}
    try:
        if streamed:
            return [chunk async for chunk in await client.models.generate_content_stream(**asking)]
        return [await client.models.generate_content(**asking)]
    finally:
        await client.aclose()


def as_sdk(body: dict[str, Any]) -> tuple[list[types.Content], types.GenerateContentConfig]:
    """A body in the SDK's types, which forbid what they do not know.

    Raises:
        ValidationError: it is not what Google takes.
    """
    encode = msgspec.json.encode
    contents = [types.Content.model_validate_json(encode(content)) for content in body["contents"]]
    rest = {key: value for key, value in body.items() if key not in ("contents", "generationConfig")}
    config = {**body.get("generationConfig", {}), **rest}
    return contents, types.GenerateContentConfig.model_validate_json(encode(config))


def as_sdk_sends(body: dict[str, Any], *, vertex: bool = False) -> dict[str, Any]:
    """The body that the SDK makes of what a body says.

    Raises:
        ValidationError: it is not what Google takes.
        ValueError: it is not what this of Google's two services takes.
    """
    contents, config = as_sdk(body)
    if vertex not in _CLIENTS:
        _CLIENTS[vertex] = Client(vertexai=vertex, api_key="the-key")
    api: Any = _CLIENTS[vertex]._api_client  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportUnknownVariableType]
    made: Any = types._GenerateContentParameters(model="m", contents=list(contents), config=config)  # pyright: ignore[reportPrivateUsage]
    convert: Any = getattr(_models, f"_GenerateContentParameters_to_{'vertex' if vertex else 'mldev'}")
    told: dict[str, Any] = convert(api, made)
    sent: dict[str, Any] = plain(_dumped(told))
    sent.pop("_url", None)
    return {key: value for key, value in sent.items() if value != {}}


def _dumped(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, dict):
        return {key: _dumped(inner) for key, inner in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_dumped(inner) for inner in cast("list[Any]", value)]
    if isinstance(value, bytes):
        from base64 import b64encode

        return b64encode(value).decode()
    return value


def plain(value: Any) -> Any:
    """A body in one spelling: proto's JSON may be in snake or camel case, its bytes in either base64."""
    if isinstance(value, list):
        return [plain(inner) for inner in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    told: dict[str, Any] = {}
    for key, inner in cast("dict[str, Any]", value).items():
        name = re.sub(r"(?<!^)_([a-z])", lambda found: found[1].upper(), key)
        if name in _OPAQUE:
            told[name] = inner
        elif name in _BYTES and isinstance(inner, str):
            told[name] = inner.replace("-", "+").replace("_", "/").rstrip("=")
        else:
            told[name] = plain(inner)
    return told
