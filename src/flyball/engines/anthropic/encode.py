"""Requests as the Messages API takes them."""

from __future__ import annotations

from typing import Any

from flyball.core.encodable import as_text
from flyball.core.settings import ModelSettings
from flyball.core.tools import ToolDefinition
from flyball.engines.anthropic.caching import Cache, put_breakpoints
from flyball.engines.anthropic.models import Traits, traits_of
from flyball.engines.anthropic.schema import fitting_schema
from flyball.engines.anthropic.thinking import thinking_of
from flyball.engines.anthropic.turns import JSONObject, turns_of
from flyball.inference.offer import Offer, mode_of, offer_of
from flyball.inference.request import OutputObject, Request

SAMPLING = frozenset(("temperature", "top_p", "top_k"))
"""What the current version of the API takes no more, from any model."""

_HELD = "Answer with nothing but JSON, without any other text, that follows this JSON Schema:"


def messages_body(request: Request, model: str, *, stream: bool, cache: Cache = False) -> JSONObject:
    """The body of a call. What is unset is left to the API; `options` goes over everything.

    Raises:
        UserError: a part that the API cannot carry.
        ToolNotFound: the one tool that must be called is not there.
    """
    traits, settings = traits_of(model), request.settings
    turns, offer = turns_of(request.messages, model, traits), offer_of(request)
    thinking = thinking_of(settings, traits, forced=_insisted(request), broken=turns.broken)
    body: JSONObject = {"model": model, "max_tokens": thinking.max_tokens, "messages": turns.messages}
    system = turns.system
    config: JSONObject = {}
    if thinking.effort is not None:
        config["effort"] = thinking.effort
    if request.output is not None:
        fitted = fitting_schema(_described(request.output))
        if fitted is not None:
            config["format"] = {"type": "json_schema", "schema": fitted}
        else:
            system = "\n\n".join(filter(None, (system, f"{_HELD}\n{as_text(_described(request.output))}")))
    if system:
        body["system"] = system
    if config:
        body["output_config"] = config
    if thinking.config is not None:
        body["thinking"] = thinking.config
    if offer.tools:
        _put_tools(body, offer, forced=traits.forced and not thinking.on)
    elif unused := [_tool(tool) for tool in request.tools] or _called(turns.messages):
        # Calls of tools that are not defined are not taken, also where none is to be called any more.
        body.update(tools=unused, tool_choice={"type": "none"})
    _put_sampling(body, settings, traits, thinks=thinking.on)
    if settings.stop:
        body["stop_sequences"] = list(settings.stop)
    if stream:
        body["stream"] = True
    for turn in turns.messages:
        only = turn["content"]
        if len(only) == 1 and only[0].keys() == {"type", "text"}:
            turn["content"] = only[0]["text"]
    put_breakpoints(body, cache)
    return body | settings.options if settings.options else body


def _insisted(request: Request) -> bool:
    """Whether somebody said that a tool must be called, and not only that text is no answer."""
    choice = request.tool_choice
    return choice is not None and (choice.mode == "required" or choice.forced is not None)


def _put_tools(body: JSONObject, offer: Offer, *, forced: bool) -> None:
    body["tools"] = [_tool(tool) for tool in offer.tools]
    mode = mode_of(offer) if forced else "auto"
    choice: JSONObject = {"type": "auto"}
    if mode == "function":
        choice = {"type": "tool", "name": offer.only}
    elif mode == "required":
        choice = {"type": "any"}
    if any(tool.sequential for tool in offer.tools):
        choice["disable_parallel_tool_use"] = True
    if choice != {"type": "auto"}:
        body["tool_choice"] = choice


def _called(turns: list[JSONObject]) -> list[JSONObject]:
    """Definitions of the tools that a history has calls of."""
    blocks = [block for turn in turns if turn["role"] == "assistant" for block in turn["content"]]
    names = dict.fromkeys(block["name"] for block in blocks if block["type"] == "tool_use")
    return [{"name": name, "input_schema": {"type": "object"}} for name in names]


def _tool(tool: ToolDefinition) -> JSONObject:
    told: JSONObject = {"name": tool.name, "input_schema": {"type": "object"} | tool.parameters}
    if tool.description:
        told["description"] = tool.description
    if tool.strict:
        # Only for who asks: the API compiles each such schema, and takes a few of them.
        fitted = fitting_schema(tool.parameters)
        if fitted is not None:
            told.update(input_schema=fitted, strict=True)
    return told


def _put_sampling(body: JSONObject, settings: ModelSettings, traits: Traits, *, thinks: bool) -> None:
    if thinks or not traits.sampling:
        return
    # The models that take either do not take both.
    if settings.effective_temperature is not None:
        body["temperature"] = settings.effective_temperature
    elif settings.top_p is not None:
        body["top_p"] = settings.top_p


def _described(output: OutputObject) -> dict[str, Any]:
    if output.description and "description" not in output.schema:
        return {**output.schema, "description": output.description}
    return output.schema
