"""RequireCapabilities: tools that only run for who may use them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flyball.core.context import RunContext
from flyball.core.errors import IdentityInvalid, UserError
from flyball.core.forms.semstreams import ToolCallFilterResult, ToolCallRejection
from flyball.core.messages import ToolCall
from flyball.identity.agent_identity import AgentIdentity
from flyball.identity.chain import LONGEST, ChainVerdict, verify_chain
from flyball.identity.provider import IdentityProvider
from flyball.identity.verdict import Problem, Verdict


class RequireCapabilities:
    """A tool filter, for `Agent(tool_filters=[...])`: who may call what is decided by credentials.

    A call of a tool that needs a capability runs only if the loop's identity has it, by credentials that lead
    to an issuer which the provider knows. That is looked at when the model has asked for the call, and again
    when it is about to run, since it may have waited for approval meanwhile. Else it is refused: the model
    reads why, and the journal has it. Tools that are not named need nothing.

    Args:
        provider: who says whether credentials hold.
        needs: the capability that a tool needs, or several, by the tool's name.
        longest: how often a capability may have been handed on.
    """

    def __init__(
        self, provider: IdentityProvider, needs: Mapping[str, str | Iterable[str]], *, longest: int = LONGEST
    ) -> None:
        if not isinstance(needs, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's
            raise UserError(
                f"RequireCapabilities takes capabilities by tools, such as {{'pay': 'payments.write'}}, not "
                f"{needs!r:.200}"
            )
        self._provider = provider
        self._needs = {tool: (one,) if isinstance(one, str) else tuple(one) for tool, one in needs.items()}
        self._longest = longest

    async def __call__(self, context: RunContext[Any], calls: Sequence[ToolCall]) -> ToolCallFilterResult:
        """Let through the calls that need nothing, or that the loop has the capabilities for."""
        if not any(self._needs.get(call.name) for call in calls):
            return ToolCallFilterResult(approved=tuple(calls))
        found = await self._held(context)
        approved, rejected = list[ToolCall](), list[ToolCallRejection]()
        for call in calls:
            reason = self._against(call.name, found)
            if reason:
                rejected.append(ToolCallRejection(call, reason))
            else:
                approved.append(call)
        return ToolCallFilterResult(tuple(approved), tuple(rejected))

    def guards(self, tool: str) -> bool:
        """Whether a tool needs a capability."""
        return bool(self._needs.get(tool))

    async def refusal(self, context: RunContext[Any], tool: str) -> str:
        """Why a call of a tool that is about to run may not; empty if it may."""
        return self._against(tool, await self._held(context))

    async def _held(self, context: RunContext[Any]) -> ChainVerdict | Verdict:
        try:
            identity = AgentIdentity.recorded(context.facts.identity)
            if identity is None:
                return Verdict(Problem.NOT_HELD, "this run acts as nobody in particular")
            now = context.facts.at or None
            return await verify_chain(identity, self._provider, now=now, longest=self._longest)
        except IdentityInvalid as error:
            return Verdict(Problem.MALFORMED, error.message)

    def _against(self, tool: str, found: ChainVerdict | Verdict) -> str:
        for capability in self._needs.get(tool, ()):
            verdict = found if isinstance(found, Verdict) else found.on(capability)
            if not verdict:
                return (
                    f"{tool} needs the capability {capability!r}, and this agent does not have it: "
                    f"{verdict.reason} ({verdict.problem})"
                )
        return ""
