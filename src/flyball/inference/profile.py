"""Profiles: what a model can do, as far as the loop must know before it asks.

A profile decides defaults and is never needed for a call: an engine may say what it can do in an attribute
`profile`, which wins; else the table below goes by provider and by the longest prefix of the model's name;
a model that nobody knows gets its provider's row, and a provider that nobody knows the cautious default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.spec import OutputMode
from flyball.inference.engine import Engine
from flyball.inference.model_string import OPENAI_COMPATIBLE, ModelRef
from flyball.inference.request import ModelInfo


class Profile(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """What a model can do.

    `tools`: it takes tool definitions, natively or by a protocol of its engine. `native_schema`: it can be
    held to `Request.output`; `grammar`: to `Request.grammar`. `thinking`: it reasons before it answers.
    `context_window` in tokens, 0 where unknown. `default_output_mode`: how to get typed output from it.
    """

    tools: bool = True
    parallel_tool_calls: bool = True
    native_schema: bool = False
    grammar: bool = False
    thinking: bool = False
    images: bool = False
    context_window: int = 0
    default_output_mode: OutputMode = OutputMode.TOOL


ABILITIES = ("tools", "parallel_tool_calls", "native_schema", "grammar", "thinking", "images")
"""The fields of a profile that say what a model can do."""
_NEEDED = {OutputMode.TOOL: "tools", OutputMode.NATIVE: "native_schema", OutputMode.GRAMMAR: "grammar"}
"""What a model must be able to do for an output mode."""

UNKNOWN = Profile(parallel_tool_calls=False)
"""For a model that nobody knows: tools, one at a time, and nothing else taken for granted."""

Rows: TypeAlias = Mapping[str, Profile]
"""Profiles by the prefix of the model's name; the empty prefix is the provider's own row."""

_GPT = Profile(native_schema=True, images=True)
_OPENAI: Rows = {
    "": _GPT,
    "gpt-3.5": Profile(context_window=16_385),
    "gpt-4": Profile(context_window=8_192),
    "gpt-4-turbo": Profile(images=True, context_window=128_000),
    "gpt-4o": replace(_GPT, context_window=128_000),
    "gpt-4.1": replace(_GPT, context_window=1_047_576),
    "gpt-5": replace(_GPT, thinking=True, context_window=400_000),
    "gpt-5-chat": replace(_GPT, context_window=128_000),
    "o1": replace(_GPT, thinking=True, context_window=200_000),
    "o3": replace(_GPT, thinking=True, context_window=200_000),
    "o4": replace(_GPT, thinking=True, context_window=200_000),
}

_CLAUDE = Profile(images=True, context_window=200_000)
_CLAUDE_4 = replace(_CLAUDE, thinking=True)
_CLAUDE_4_5 = replace(_CLAUDE_4, native_schema=True)
_CLAUDE_4_6 = replace(_CLAUDE_4_5, context_window=1_000_000)
# They think before they answer, and cannot be made to call a tool meanwhile: the schema is what holds them.
_CLAUDE_5 = replace(_CLAUDE_4_6, default_output_mode=OutputMode.NATIVE)
_ANTHROPIC: Rows = {
    "": replace(_CLAUDE_5, context_window=0),
    "claude-3": _CLAUDE,
    "claude-3-7": _CLAUDE_4,
    "claude-sonnet-4": _CLAUDE_4,
    "claude-opus-4": _CLAUDE_4,
    "claude-sonnet-4-5": _CLAUDE_4_5,
    "claude-opus-4-1": _CLAUDE_4_5,
    "claude-opus-4-5": _CLAUDE_4_5,
    "claude-haiku-4-5": _CLAUDE_4_5,
    "claude-sonnet-4-6": _CLAUDE_4_6,
    "claude-opus-4-6": _CLAUDE_4_6,
    "claude-opus-4-7": _CLAUDE_4_6,
    "claude-opus-4-8": _CLAUDE_4_6,
    "claude-sonnet-5": _CLAUDE_5,
    "claude-opus-5": _CLAUDE_5,
    "claude-haiku-5": _CLAUDE_5,
    "claude-fable-5": _CLAUDE_5,
    "claude-mythos": _CLAUDE_5,
}

_GEMINI = Profile(native_schema=True, images=True)
_GEMINI_THINKS = replace(_GEMINI, thinking=True, context_window=1_048_576)
_GOOGLE: Rows = {
    "": _GEMINI,
    "gemini-1.5": replace(_GEMINI, context_window=1_048_576),
    "gemini-1.5-pro": replace(_GEMINI, context_window=2_097_152),
    "gemini-2.0": replace(_GEMINI, context_window=1_048_576),
    "gemini-2.5": _GEMINI_THINKS,
    "gemini-2.5-flash-image": replace(_GEMINI, tools=False, context_window=65_536),
    "gemini-3": _GEMINI_THINKS,
    "gemini-3-pro-image": replace(_GEMINI_THINKS, tools=False, context_window=65_536),
    "gemini-4": _GEMINI_THINKS,
    "gemini-flash": _GEMINI_THINKS,
    "gemini-pro": _GEMINI_THINKS,
}

_TABLE: Mapping[str, Rows] = {
    # Small models: the decoder holds them to the schema, and one call at a time is enough for them.
    "local": {
        "": Profile(
            parallel_tool_calls=False,
            native_schema=True,
            grammar=True,
            default_output_mode=OutputMode.NATIVE,
        )
    },
    "openai": _OPENAI,
    "anthropic": _ANTHROPIC,
    "google": _GOOGLE,
    "vertex": _GOOGLE,
    "vertex-anthropic": _ANTHROPIC,
    "ollama": {"": replace(UNKNOWN, native_schema=True)},
    OPENAI_COMPATIBLE: {"": UNKNOWN},
    # Scripts and functions: what they say is their author's affair, and so is what it is held to.
    "test": {"": Profile(native_schema=True, grammar=True, images=True)},
    "function": {"": Profile(grammar=True, images=True)},
}


def profile_for(model: ModelRef | ModelInfo | Engine) -> Profile:
    """What a model can do, told from its string, its info, or the engine that speaks for it."""
    if isinstance(model, ModelRef):
        return _row(model.provider, model.name)
    if not isinstance(model, ModelInfo):
        own = getattr(model, "profile", None)
        if isinstance(own, Profile):
            return own
        model = model.model_info()
    row = _row(model.provider, model.name)
    return replace(row, context_window=model.context_window) if model.context_window else row


def shared(profiles: Sequence[Profile]) -> Profile:
    """What all of them can do: the window is the smallest that is known.

    The output mode is the first that one of them prefers and all can serve.
    """
    can = {name: all(getattr(one, name) for one in profiles) for name in ABILITIES}
    windows = [one.context_window for one in profiles if one.context_window]
    modes = [one.default_output_mode for one in profiles]
    mode = next((mode for mode in modes if can.get(_NEEDED.get(mode, ""), True)), OutputMode.PROMPTED)
    return Profile(**can, context_window=min(windows, default=0), default_output_mode=mode)


def combined(profiles: Sequence[Profile]) -> Profile:
    """What any of them can do: the window is the largest that is known, the output mode is the first's."""
    can = {name: any(getattr(one, name) for one in profiles) for name in ABILITIES}
    window = max([one.context_window for one in profiles])
    return Profile(**can, context_window=window, default_output_mode=profiles[0].default_output_mode)


def _row(provider: str, name: str) -> Profile:
    rows = _TABLE.get(provider)
    if rows is None:
        return UNKNOWN
    return rows[max((prefix for prefix in rows if name.startswith(prefix)), key=len)]
