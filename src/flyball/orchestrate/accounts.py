"""Accounts: what runs have used and cost, by agent, by model and by day.

    report = await usage_report(Catalogue(journal), LoopQuery(since=monday))

Guarantees: every model call is counted once. The `usage` of a loop has that of the loops under it as well (as
far as they were over before it), of what it was forked from and of what it goes on from: so that is not added
up, but what each loop's own calls used (`LoopSummary.own`), over the loops that the query finds and all that
stand under them. It is counted for the agent that made the call, for the model that answered, and for the day
(UTC) on which that agent's loop began. What is not known is never 0: `unpriced` says of how many loops the
cost is not, or not wholly, in `cost`.
"""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct, field
from msgspec.structs import replace

from flyball.core.usage import RunUsage
from flyball.observe.run_cost import RunCost
from flyball.orchestrate.catalogue import Catalogue, LoopQuery
from flyball.orchestrate.catalogue.query import MOST, checked, matcher
from flyball.orchestrate.projections.summary import LoopSummary, OwnUse


class Account(Struct, frozen=True):
    """What some loops have used: `usage` counts model calls and tokens, `loops` those that made any.

    `cost` is what is known of it; `unpriced` are the loops of which not all is: there is no price for a model
    (one that runs here has none), or its engine did not say what it used.
    """

    loops: int = 0
    usage: RunUsage = RunUsage()
    cost: RunCost = RunCost()
    unpriced: int = 0


class UsageReport(Struct, frozen=True):
    """What the loops of a query have used, with those under them.

    `outcomes` counts the loops that the query found and that stand under no other, by how they stand: a
    `Stage`, `deferred`, `interrupted`, or `""` for those that cannot be read.
    """

    total: Account = Account()
    agents: dict[str, Account] = field(default_factory=dict[str, Account])
    models: dict[str, Account] = field(default_factory=dict[str, Account])
    days: dict[str, Account] = field(default_factory=dict[str, Account])
    """By date, such as 2026-01-31, the earliest first."""
    outcomes: dict[str, int] = field(default_factory=dict[str, int])


class _Loop(Struct):
    """What a report needs of a loop."""

    parent: str
    wanted: bool
    agent: str
    day: str
    stage: str
    own: tuple[OwnUse, ...]


async def usage_report(catalogue: Catalogue, query: LoopQuery = LoopQuery()) -> UsageReport:  # noqa: B008 - frozen
    """What the loops of a query have used. All pages are counted: `limit` and `cursor` do not matter.

    All loops of the journal are looked at, since those under one that is wanted need not be like it.

    Raises:
        InvalidRequest: the query cannot be asked; the error names the field.
        JournalFailure: the journal cannot be listed.
    """
    wanted = matcher(replace(checked(query), roots_only=False))
    loops: dict[str, _Loop] = {}
    page_of = LoopQuery(limit=MOST)
    while True:
        page = await catalogue.find(page_of)
        for one in page.loops:
            loops[one.loop_id] = _Loop(
                one.parent_loop_id, wanted(one), one.agent, _day(one), one.stage, one.own
            )
        if not page.next:
            return _reported(loops)
        page_of = LoopQuery(limit=MOST, cursor=page.next)


def _reported(loops: dict[str, _Loop]) -> UsageReport:
    total = _Sum()
    agents: dict[str, _Sum] = {}
    models: dict[str, _Sum] = {}
    days: dict[str, _Sum] = {}
    outcomes: dict[str, int] = {}
    for loop_id, one in loops.items():
        top = _top(loops, loop_id)
        if not loops[top].wanted:
            continue
        if top == loop_id:
            outcomes[one.stage] = outcomes.get(one.stage, 0) + 1
        if one.own:
            for sums in (total, agents.setdefault(one.agent, _Sum()), days.setdefault(one.day, _Sum())):
                sums.add(one.own)
        for use in one.own:
            models.setdefault(use.model, _Sum()).add((use,))
    return UsageReport(
        total.account(), _accounts(agents), _accounts(models), _accounts(days), dict(sorted(outcomes.items()))
    )


def _top(loops: dict[str, _Loop], loop_id: str) -> str:
    """The loop that all that one stands under stands under; itself, where that is not in this journal."""
    seen = {loop_id}
    while (above := loops[loop_id].parent) in loops and above not in seen:
        seen.add(above)
        loop_id = above
    return loop_id


class _Sum:
    """An account that is being added up."""

    __slots__ = ("_cost", "_loops", "_unpriced", "_usage")

    def __init__(self) -> None:
        self._loops = self._unpriced = 0
        self._usage, self._cost = RunUsage(), RunCost()

    def add(self, own: tuple[OwnUse, ...]) -> None:
        """One more loop."""
        self._loops += 1
        self._unpriced += any(use.cost is None or use.cost.total is None for use in own)
        for use in own:
            self._usage = self._usage.add_run(use.usage)
            if use.cost is not None:
                known = {name: one for name, one in use.cost.breakdown.items() if one is not None}
                self._cost += RunCost.of({**known}, use.cost.currency)

    def account(self) -> Account:
        return Account(self._loops, self._usage, self._cost, self._unpriced)


def _accounts(sums: dict[str, _Sum]) -> dict[str, Account]:
    return {name: sums[name].account() for name in sorted(sums)}


def _day(one: LoopSummary) -> str:
    """The date on which a loop began; nothing where that is no time."""
    try:
        return datetime.fromtimestamp(one.started_at, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
