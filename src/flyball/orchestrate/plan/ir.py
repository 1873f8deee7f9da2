"""What crosses from one step of a plan to the next: pagantic's intermediate representation.

Steps give what suits them: text, messages, chunks, candidates, a model's answer. `StepInput.of` reads any of
it, so that steps which do not know each other fit together; each conversion stands here, once.

What a score means depends on who gave it: a retriever's can be compared with others of the same retriever
only; a reranker's is from 0 to 1, and takes the former's place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from flyball.context.builder import context_text
from flyball.context.chunk import Chunk
from flyball.core.encodable import as_text, to_json
from flyball.core.messages import Message, ToolCall, ToolResult
from flyball.inference.request import Request, Result
from flyball.rerank.candidate import Candidate

CandidateIR: TypeAlias = Candidate
RerankCandidate: TypeAlias = Candidate
ToolCallIR: TypeAlias = ToolCall
ToolResultIR: TypeAlias = ToolResult


class ContextIR(Struct, frozen=True):
    """Chunks with where they are from."""

    chunks: tuple[Chunk, ...] = ()

    @property
    def text(self) -> str:
        """As a model is told it; empty where there is nothing."""
        return context_text(self.chunks) if self.chunks else ""


class RerankInput(Struct, frozen=True):
    """What a reranker takes: a question, and what was found for it."""

    query: str
    candidates: tuple[Candidate, ...]


class StepOutput(Struct, frozen=True):
    """What a step may give to the next one, where it has more to give than one kind of thing."""

    content: str = ""
    candidates: tuple[Candidate, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    raw: Any = None


class StepInput(Struct, frozen=True):
    """What a step is given, by what it holds. `raw` is what it was, whatever that is."""

    messages: tuple[Message, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    context: ContextIR = ContextIR()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()
    query: str = ""
    raw: Any = None

    @staticmethod
    def of(value: Any) -> StepInput:
        """Read what a step before has given."""
        if isinstance(value, StepInput):
            return value
        if isinstance(value, Request):
            return StepInput(messages=value.messages, raw=value)
        if isinstance(value, Result):
            return StepInput(messages=value.messages, tool_calls=value.tool_calls, raw=value)
        if isinstance(value, StepOutput):
            return StepInput(candidates=value.candidates, tool_calls=value.tool_calls, raw=value)
        if isinstance(value, RerankInput):
            return StepInput(candidates=value.candidates, query=value.query, raw=value)
        if isinstance(value, ContextIR):
            return StepInput(candidates=candidates_of(value.chunks), context=value, raw=value)
        if isinstance(value, ToolCall | ToolResult):
            return replace(_of_many((value,)), raw=value)
        return _of_many(value)

    @property
    def text(self) -> str:
        """It in words: what was said last, what was found, what tools gave, or what it is as JSON."""
        raw = self.raw
        if isinstance(raw, str):
            return raw
        if isinstance(raw, Result | StepOutput):
            return raw.content
        if self.messages:
            return self.messages[-1].text
        if self.candidates:
            return context_text(chunks_of(self.candidates))
        if self.tool_results:
            return "\n".join([result.text for result in self.tool_results])
        return as_text(to_json(raw, "the step's input"))


def _of_many(value: Any) -> StepInput:
    if not isinstance(value, list | tuple) or not value:
        return StepInput(raw=value)
    many = tuple(cast("Sequence[Any]", value))
    if all(isinstance(one, Message) for one in many):
        return StepInput(messages=many, raw=many)
    if all(isinstance(one, Candidate) for one in many):
        return StepInput(candidates=many, raw=many)
    if all(isinstance(one, Chunk) for one in many):
        return StepInput(candidates=candidates_of(many), context=ContextIR(many), raw=many)
    if all(isinstance(one, ToolCall) for one in many):
        return StepInput(tool_calls=many, raw=many)
    if all(isinstance(one, ToolResult) for one in many):
        return StepInput(tool_results=many, raw=many)
    return StepInput(raw=value)


def candidates_of(chunks: Sequence[Chunk]) -> tuple[Candidate, ...]:
    """Chunks as candidates, for a reranker."""
    return tuple([Candidate(chunk.content, chunk.score, chunk.source, chunk.metadata) for chunk in chunks])


def chunks_of(candidates: Sequence[Candidate]) -> tuple[Chunk, ...]:
    """Candidates as chunks, for a context."""
    return tuple([Chunk(one.content, one.source, one.score, one.metadata) for one in candidates])
