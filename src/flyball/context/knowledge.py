"""Knowledge: a knowledge base on an agent: when it is asked, where what it knows goes, what it is told."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, Literal, TypeAlias, get_args

from flyball.context.knowledge_base import KnowledgeBase
from flyball.context.policy import ContextPolicy, Placement
from flyball.core.context import RunContext
from flyball.core.context_provider import ContextProvider
from flyball.core.errors import UserError
from flyball.core.feature import Feature

When: TypeAlias = Literal["run", "turn", "compaction"]
OnError: TypeAlias = Literal["raise", "degrade"]
Asked: TypeAlias = KnowledgeBase | ContextProvider
"""Who can be asked: for text, by `retrieve(query)`, or for messages, by `build(query)`."""

PREFIX = "[Knowledge Context] "
"""What knowledge begins with, so that the model can tell it from instructions."""


class Knowledge(Feature):
    """Asks a knowledge base about what the user says, and tells the model what it knows.

    - `when="run"`: once, before the first turn, about the prompt as the input guardrails left it. What was
      found joins the instructions, stays in the history, and is recorded in `Admitted`.
    - `when="turn"`: before each model call, about what the user said last. What was found is in what is sent,
      and nowhere in the history; it is recorded in `TurnPrepared`.
    - `when="compaction"`: as with `"turn"`, but only once what was said is summed up. A function that gives
      the base then sees in `ctx.messages` what the summary stands for (see `flyball.context.recall`).

    What was recorded is not asked for again, by a resume, a replay or another driver. Nothing is asked where
    the user said no word, or where a task brought its context along.

    Args:
        base: the knowledge base, or a context provider, such as a `ContextBuilder`; or a function that gives
            the one of a run, such as that of its user: `lambda ctx: ctx.deps.knowledge`. What has a `build`
            is asked by it, also if it has a `retrieve`. A retriever, which has to be told how much is wanted,
            is none of
            these: put it into a `ContextBuilder`.
        auto_store: whether the text of the answer is stored when a run has ended well. It is, at least once:
            also if the run is resumed after a crash. If it fails, the answer counts all the same, and
            `Delivered` says why.
        when: see above; where it is not given, what the provider's `policy` says, or `"run"`.
        placement: for each turn, where it goes: into the leading `"system"` message, or into the user's last
            message, before what that says. For a run it is with the instructions. Where it is not given, what
            the provider's `policy` says, or `"system"`.
        on_error: what becomes of a run whose knowledge base fails when it is asked: it fails with
            `KnowledgeFailed`; or, with `"degrade"`, it goes on without, and the event says so.
        prefix: what knowledge begins with. Where it is not given, `"[Knowledge Context] "`; but what a
            provider gives for a turn is sent as it is.
        name: what it is called in journals and errors.
        max_tokens: how many tokens of what was found are told, about; the rest is cut from its middle.

    Raises:
        UserError: an option that cannot be.
    """

    def __init__(
        self,
        base: Asked | Callable[[RunContext[Any]], Asked],
        *,
        auto_store: bool = False,
        when: When | None = None,
        placement: Placement | None = None,
        on_error: OnError = "raise",
        prefix: str | None = None,
        name: str = "knowledge",
        max_tokens: int | None = None,
    ) -> None:
        if not _can_be_asked(base) and not callable(base):
            raise UserError(
                f"Knowledge takes a knowledge base, with retrieve() and store(), or a context provider, with "
                f"build(), not {base!r}"
            )
        if _can_be_asked(base):
            check_asked(base)
        policy: Any = getattr(base, "policy", None)
        if isinstance(policy, ContextPolicy):
            when = when or ("turn" if policy.ephemeral else "run")
            placement = placement or (policy.placement if when != "run" else "system")
        when, placement = when or "run", placement or "system"
        _one_of("when", when, When)
        _one_of("placement", placement, Placement)
        _one_of("on_error", on_error, OnError)
        if auto_store and not callable(getattr(base, "store", None)) and _can_be_asked(base):
            raise UserError(f"auto_store needs a knowledge base with store(), and {base!r} has none")
        if when == "run" and placement != "system":
            raise UserError(
                "the knowledge of a run is with its instructions: for 'before_user' say when='turn'"
            )
        if prefix is not None and not isinstance(prefix, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"prefix= takes text, not {prefix!r}")
        if max_tokens is not None and not max_tokens > 0:
            raise UserError(f"max_tokens={max_tokens!r}: give a number above 0, or none")
        self.base = base
        self.max_tokens = max_tokens
        self.auto_store = bool(auto_store)
        self.when: When = when
        self.placement: Placement = placement
        self.on_error: OnError = on_error
        self.prefix = PREFIX if prefix is None else prefix
        self.verbatim = prefix is None and when != "run"
        self.name = name

    def base_of(self, context: RunContext[Any]) -> Any:
        """Who is asked in a run, which a function of the user's may have to say.

        Raises:
            UserError: it is a retriever, or nobody that can be asked.
        """
        base: Any = self.base
        return base if _can_be_asked(base) else check_asked(base(context))

    def prefix_of(self, base: Any) -> str:
        """What stands before what somebody said. What a provider gives has an opening of its own.

        Only the knowledge of a run is looked for again, by its prefix: there a provider's has one, too.
        """
        return "" if self.verbatim and gives_messages(base) else self.prefix

    def __repr__(self) -> str:
        return f"Knowledge({self.base!r}, when={self.when!r})"


def gives_messages(base: Any) -> bool:
    """Whether somebody is asked for messages, and not for text."""
    return callable(getattr(base, "build", None))


def check_asked(base: Any) -> Any:
    """The same, if it can be asked with nothing but a question.

    Raises:
        UserError: it is a retriever, or nobody that can be asked.
    """
    if gives_messages(base):
        return base
    retrieve = getattr(base, "retrieve", None)
    if not callable(retrieve):
        raise UserError(f"knowledge is asked by retrieve() or build(), and {base!r} has neither")
    if not _takes_one(retrieve):
        raise UserError(
            f"{base!r} is a retriever: its retrieve() wants a limit too. Say how much of what it finds is "
            "told, and how: Knowledge(ContextBuilder(retriever, max_chunks=5))"
        )
    return base


def _can_be_asked(base: Any) -> bool:
    return callable(getattr(base, "retrieve", None)) or gives_messages(base)


def _takes_one(function: Callable[..., Any]) -> bool:
    try:
        signature(function).bind("")
    except TypeError:
        return False
    except ValueError:
        return True  # one of C's, which does not say
    return True


def _one_of(option: str, given: object, known: Any) -> None:
    if given not in get_args(known):
        raise UserError(f"{option}= is {' or '.join([repr(one) for one in get_args(known)])}, not {given!r}")
