"""Asking knowledge bases, and telling them: before the first turn, before each, and at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from flyball.core.context import RunContext
from flyball.core.encodable import clean_text
from flyball.core.errors import FlyballError, KnowledgeFailed
from flyball.core.messages import Message, Role, Text
from flyball.core.tokens import by_bytes
from flyball.core.truncation import truncate_text
from flyball.orchestrate.awaiting import answer_of
from flyball.orchestrate.compacted import summed_up_in
from flyball.orchestrate.failing import heed_takeover
from flyball.orchestrate.provided import relevance_of, sources_of, texts_of
from flyball.orchestrate.state import State
from flyball.tool.result import describe

if TYPE_CHECKING:
    from flyball.context.knowledge import Knowledge

_SYSTEM, _USER = Role.SYSTEM, Role.USER


async def known_of_run(
    bases: tuple[Knowledge, ...], state: State, context: RunContext[Any], prompt: Message | None
) -> tuple[tuple[str, ...], tuple[str, ...], float | None]:
    """What is known about a run's prompt, as instructions; what could not be asked; and how relevant it is.

    `prompt` is as the guardrails left it, where they did not leave it alone.

    Raises:
        KnowledgeFailed: a knowledge base without which the run must not go on.
    """
    found, degraded, relevance = list[str](), list[str](), list[float]()
    question = _question([*state.history, *([prompt] if prompt is not None else [])])
    for base in bases:
        if base.when == "run" and question and not state.spec.briefed:
            told = await _asked(base, context, question, degraded)
            found += told.texts
            relevance += told.relevance
    return tuple(found), tuple(degraded), max(relevance, default=None)


async def known_of_turn(
    bases: tuple[Knowledge, ...], state: State, context: RunContext[Any], messages: Sequence[Message]
) -> tuple[Sequence[Message], list[str], list[str], float | None]:
    """The messages with what is known about what the user said last; who knew something, and who failed.

    And how relevant it is: as much as what the best of them found.

    Raises:
        KnowledgeFailed: a knowledge base without which the run must not go on.
    """
    knew, degraded, relevance = list[str](), list[str](), list[float]()
    question = _question(state.history)
    covered = summed_up_in(state)
    for base in bases:
        if base.when == "run" or not question or state.spec.briefed:
            continue
        if base.when == "compaction" and not covered:
            continue
        seen = context if base.when == "turn" else _seeing(context, covered)
        told = await _asked(base, seen, question, degraded)
        relevance += told.relevance
        if told.texts:
            messages = (_with_system if base.placement == "system" else _with_user)(messages, told.texts)
            knew.append(f"{base.name}: {told.sources}" if told.sources else base.name)
    return messages, knew, degraded, max(relevance, default=None)


def _seeing(context: RunContext[Any], messages: tuple[Message, ...]) -> RunContext[Any]:
    """The context, as whoever is asked about what was summed up sees it."""
    return RunContext(context.deps, replace(context.facts, history=messages), context.home)


async def store(bases: tuple[Knowledge, ...], state: State, context: RunContext[Any]) -> None:
    """Tell those who want to be told the answer of a run that has ended well.

    Raises:
        KnowledgeFailed: one could not keep it; the others were told.
    """
    failed: KnowledgeFailed | None = None
    answer = clean_text(state.answer or "")
    for base in bases:
        if not base.auto_store or not answer.strip():
            continue
        try:
            await answer_of(base.base_of(context).store, answer)
        except Exception as error:
            failed = failed or _failure(base, "store", error)
    if failed is not None:
        raise failed


def standing(bases: tuple[Knowledge, ...], history: Sequence[Message]) -> tuple[str, ...]:
    """What the leading message says, but for what knowledge an earlier run, or the forked one, left there."""
    if not history or history[0].role is not _SYSTEM:
        return ()
    prefixes = tuple([base.prefix for base in bases if base.prefix])
    texts = [part.text for part in history[0].parts if type(part) is Text]
    return tuple([text for text in texts if not text.startswith(prefixes)])


def _question(messages: Sequence[Message]) -> str:
    """What the user said last, in words."""
    for message in reversed(messages):
        if message.role is _USER and message.text.strip():
            return message.text
    return ""


class _Told(NamedTuple):
    """What somebody knows, as texts for the model; and what that was made of, in words, if it is known.

    `relevance` is one number, or none where nobody says.
    """

    texts: tuple[str, ...] = ()
    sources: str = ""
    relevance: tuple[float, ...] = ()


async def _asked(base: Knowledge, context: RunContext[Any], question: str, degraded: list[str]) -> _Told:
    """What is known about a question, with its prefix; nothing where nobody knows, or could be asked."""
    try:
        asked = base.base_of(context)
        build: Any = getattr(asked, "build", None)
        if callable(build):
            messages: Any = await answer_of(build, question)
            texts, sources = texts_of(messages), sources_of(messages)
            relevance = relevance_of(messages)
        else:
            texts, sources, relevance = _text(await answer_of(asked.retrieve, question)), "", None
    except Exception as error:
        failure = _failure(base, "retrieve", error)
        if base.on_error == "raise":
            raise failure from error
        degraded.append(failure.message)
        return _Told()
    prefix = base.prefix_of(asked)
    said = () if relevance is None else (relevance,)
    if base.max_tokens is not None:
        texts = _within(texts, base.max_tokens)
    return _Told(tuple([f"{prefix}{text}" for text in texts]), sources if texts else "", said)


def _within(texts: tuple[str, ...], tokens: int) -> tuple[str, ...]:
    """As many of some texts as there is room for; the last of them cut."""
    kept: list[str] = []
    for text in texts:
        if tokens <= 0:
            break
        kept.append(truncate_text(text, tokens))
        tokens -= by_bytes(text)
    return tuple(kept)


def _text(found: Any) -> tuple[str, ...]:
    """What a knowledge base gave, if there is a word in it."""
    if found is not None and not isinstance(found, str):
        raise TypeError(f"retrieve() gave a {type(found).__name__}: it must give text")
    text = clean_text(found or "")
    return (text,) if text.strip() else ()


def _failure(base: Knowledge, doing: str, error: Exception) -> KnowledgeFailed:
    heed_takeover(error)
    told = error.message if isinstance(error, FlyballError) else describe(error)
    what = "be asked" if doing == "retrieve" else "store the answer"
    retryable = error.retryable if isinstance(error, FlyballError) else isinstance(error, OSError)
    failure = KnowledgeFailed(
        clean_text(f"{base.name} could not {what}: {told}"),
        retryable=retryable,
        knowledge=base.name,
        doing=doing,
    )
    failure.__cause__ = error
    return failure


def _with_system(messages: Sequence[Message], texts: tuple[str, ...]) -> Sequence[Message]:
    parts = tuple([Text(text) for text in texts])
    if messages[0].role is not _SYSTEM:
        return (Message(_SYSTEM, parts), *messages)
    return (replace(messages[0], parts=(*messages[0].parts, *parts)), *messages[1:])


def _with_user(messages: Sequence[Message], texts: tuple[str, ...]) -> Sequence[Message]:
    """The messages with texts before what the user said last: nobody speaks twice in a row."""
    spoken = [index for index, message in enumerate(messages) if message.role is _USER]
    at = next((index for index in reversed(spoken) if messages[index].text.strip()), spoken[-1])
    parts = tuple([Text(text) for text in texts])
    return (*messages[:at], replace(messages[at], parts=(*parts, *messages[at].parts)), *messages[at + 1 :])
