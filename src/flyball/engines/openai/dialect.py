"""Dialects: how servers that speak OpenAI's protocol differ, as data.

`OPENAI` is the original. The others are what their makers document; `COMPATIBLE` is for a server that nobody
knows: it is asked for nothing but what all of them understand.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.spec import OutputMode
from flyball.inference.profile import UNKNOWN, Profile


class Schemas(StrEnum):
    """How far an answer can be held to a schema (`response_format`)."""

    STRICT = "strict"
    """json_schema with `strict`: schemas are made to fit OpenAI's subset, and then hold."""
    PLAIN = "plain"
    """json_schema: the server takes any schema that it can make a grammar of."""
    OBJECT = "object"
    """json_object: JSON, of whatever form."""
    NONE = "none"
    """Not at all: the schema can only be told."""


class Dialect(Struct, frozen=True):
    """What a server takes and gives.

    `system_role`: what it calls a system message. `max_tokens`: the field for the length of an answer.
    `grammar`: the path to the field for a GBNF or EBNF grammar, empty where there is none. `reasoning`: the
    field in which a message has the model's thoughts, and takes them back. `tools_with_schema`: both may
    stand in one request; else the answer is asked for in two steps. `must_call`: it knows the tool choice
    `required`. `effort`: it takes `reasoning_effort`. `written`: its models may write their thoughts
    (`<think>`) and their tool calls into the text. `sure`: what is said here of it is known, not hoped for.
    """

    name: str
    system_role: str = "system"
    max_tokens: str = "max_tokens"
    schemas: Schemas = Schemas.NONE
    grammar: tuple[str, ...] = ()
    reasoning: str | None = None
    tools_with_schema: bool = True
    must_call: bool = True
    parallel: bool = True
    effort: bool = False
    written: bool = True
    sure: bool = True

    @property
    def profile(self) -> Profile:
        """What a model behind such a server can do, as far as the server decides it."""
        held = self.sure and self.schemas in {Schemas.STRICT, Schemas.PLAIN}
        return replace(
            UNKNOWN,
            native_schema=held,
            grammar=bool(self.grammar),
            # A small model behind a server of one's own is surer of a form that the decoder holds it to.
            default_output_mode=OutputMode.NATIVE if held and self.written else OutputMode.TOOL,
        )


OPENAI = Dialect(
    "openai",
    system_role="developer",
    max_tokens="max_completion_tokens",
    schemas=Schemas.STRICT,
    effort=True,
    written=False,
)
AZURE = replace(OPENAI, name="azure")
OPENROUTER = Dialect(
    "openrouter", schemas=Schemas.STRICT, reasoning="reasoning", effort=True, written=False
)  # fmt: skip
OLLAMA = Dialect("ollama", schemas=Schemas.PLAIN, reasoning="reasoning", must_call=False, parallel=False)
VLLM = Dialect(
    "vllm", schemas=Schemas.PLAIN, grammar=("structured_outputs", "grammar"), reasoning="reasoning_content"
)  # fmt: skip
LLAMA_CPP = Dialect(
    "llama.cpp",
    schemas=Schemas.PLAIN,
    grammar=("grammar",),
    reasoning="reasoning_content",
    tools_with_schema=False,
)
LM_STUDIO = Dialect("lm-studio", schemas=Schemas.PLAIN, reasoning="reasoning_content")
COMPATIBLE = Dialect(
    "openai-compatible",
    schemas=Schemas.PLAIN,
    reasoning="reasoning_content",
    tools_with_schema=False,
    sure=False,
)
