"""Requests as `generateContent` takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from msgspec import Struct

from flyball.core.tools import ToolDefinition
from flyball.engines.google.contents import JSONObject, history_of
from flyball.engines.google.generations import Generation
from flyball.engines.google.schemas import fitted
from flyball.engines.google.thinking import thinking_config
from flyball.inference.offer import Offer, offer_of
from flyball.inference.request import OutputObject, Request

_CACHE = "cachedContent"
_CACHED = ("systemInstruction", "tools", "toolConfig")
"""What stands in the cache, and so not in a request that names one."""


class Asking(Struct, frozen=True):
    """How a model is asked: what its generation takes, whether on Vertex AI, and what it is to hold back."""

    generation: Generation
    vertex: bool = False
    safety: Mapping[str, str] = {}


def generate_body(request: Request, asking: Asking) -> JSONObject:
    """The body of a call. What is unset is left to Gemini.

    `options` is laid over everything, level by level: `{"generationConfig": {"topK": 40}}` leaves the rest of
    the configuration as it is. With `cachedContent` in it, what the cache holds is not sent again.

    Raises:
        UserError: a part or a schema that Gemini cannot take.
        ToolNotFound: the one tool that must be called is not there.
    """
    history = history_of(request.messages, asking.generation, vertex=asking.vertex)
    body: JSONObject = {"contents": history.contents}
    if history.system:
        body["systemInstruction"] = {"parts": history.system, "role": "user"}
    if request.tools:
        _put_tools(body, request.tools, offer_of(request))
    if asking.safety:
        body["safetySettings"] = [
            {"category": category, "threshold": threshold} for category, threshold in asking.safety.items()
        ]
    if config := _config(request, asking.generation):
        body["generationConfig"] = config
    options = request.settings.options
    if not options:
        return body
    if options.get(_CACHE):
        body = {key: value for key, value in body.items() if key not in _CACHED}
    return _over(body, options)


def _put_tools(body: JSONObject, tools: tuple[ToolDefinition, ...], offer: Offer) -> None:
    """All tools are declared wherever that can be, so that what the model called before is known to it."""
    chosen: JSONObject = {}
    if not offer.tools:
        chosen = {"mode": "NONE"}
    elif offer.must:
        chosen = {"mode": "ANY"}
        if len(offer.tools) < len(tools):
            chosen["allowedFunctionNames"] = [tool.name for tool in offer.tools]
    else:
        tools = offer.tools
    body["tools"] = [{"functionDeclarations": [_declaration(tool) for tool in tools]}]
    if chosen:
        body["toolConfig"] = {"functionCallingConfig": chosen}


def _declaration(tool: ToolDefinition) -> JSONObject:
    told: JSONObject = {"name": tool.name}
    if tool.description:
        told["description"] = tool.description
    schema = fitted(tool.parameters, f"the parameters of {tool.name!r}", strict=tool.strict is True)
    # An object without properties is refused: a function without parameters has none to describe.
    if schema.get("properties") or schema.keys() - {
        "type",
        "properties",
        "additionalProperties",
        "description",
    }:
        told["parametersJsonSchema"] = schema
    return told


def _config(request: Request, generation: Generation) -> JSONObject:
    settings = request.settings
    config: JSONObject = {}
    for name, value in (
        ("temperature", settings.effective_temperature),
        ("topP", settings.top_p),
        ("maxOutputTokens", settings.max_tokens),
        ("seed", settings.seed),
        ("thinkingConfig", thinking_config(settings, generation)),
    ):
        if value is not None:
            config[name] = value
    if settings.stop:
        config["stopSequences"] = list(settings.stop)
    if request.output is not None:
        config["responseMimeType"] = "application/json"
        config["responseJsonSchema"] = _schema(request.output)
    return config


def _schema(output: OutputObject) -> JSONObject:
    schema = fitted(output.schema, f"the schema of {output.name!r}", strict=output.strict is True)
    if output.description and "description" not in schema and "$ref" not in schema:
        return {**schema, "description": output.description}
    return schema


def _over(body: JSONObject, options: Mapping[str, Any]) -> JSONObject:
    laid = dict(body)
    for key, value in options.items():
        below = laid.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            laid[key] = _over(cast("JSONObject", below), cast("JSONObject", value))
        else:
            laid[key] = value
    return laid
