"""Lines that go wrong under whole loops, for each of those who take part, in every way.

Where is drawn by lot, the same each time: among the pieces that such a line carries when nothing goes wrong.
How bytes come in pieces is up to the system, so what is struck may differ a little between two runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import get_args

import msgspec
import pytest
from hypothesis import settings

from flyball.core.events import ToolReturned
from flyball.orchestrate.projections import normal_form
from flyball.runtime.nats import NatsOptions, connection
from tests.runtime.nats.crashing import APART, Story, lived
from tests.runtime.nats.proxy import Fault, Proxy, Way, proxied
from tests.runtime.nats.reference_loops import Walk
from tests.runtime.nats.side_by_side import accounts

WHO = ("caller", *APART)
"""Those who take part in a loop, each on a connection of its own."""
WAYS: tuple[Way, ...] = get_args(Way)
SURE = 0.6
"""The share of the pieces, from the first on, that come almost certainly."""


@pytest.mark.seeded
@pytest.mark.parametrize("fault", get_args(Fault))
async def test_every_history_comes_out_the_same(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A line that swallows is only noticed by waiting: not for as long as in life.
    monkeypatch.setattr(connection, "_ATTEMPT", 1.0)
    monkeypatch.setattr("flyball.runtime.nats.fetching._ATTEMPT", 1.0)
    draws = 1 if settings().max_examples < 100 else 2
    lots = Random(fault)
    async with accounts(tmp_path / "server", 1 + draws * len(WHO) * len(WAYS)) as (quiet, *several):
        calm, pieces = await counted(quiet)
        places: list[tuple[str, Way, int]] = [
            (who, way, lots.randint(1, int(SURE * pieces[who, way])))
            for who in WHO
            for way in WAYS
            for _ in range(draws)
        ]
        stories = await asyncio.gather(
            *[disturbed(options, fault, *place) for options, place in zip(several, places, strict=True)]
        )
    assert min(pieces.values()) > 10, pieces
    wrong = [place for place, story in zip(places, stories, strict=True) if not is_same(story, calm)]
    assert not wrong


async def counted(options: NatsOptions) -> tuple[Story, dict[tuple[str, Way], int]]:
    """A loop over good lines, and how many pieces each of them carried on each way."""
    async with AsyncExitStack() as stack:
        proxies, lines = dict[str, Proxy](), dict[str, NatsOptions]()
        for who in WHO:
            proxies[who], lines[who] = await stack.enter_async_context(line(options))
        story = await lived(options, Walk(), None, "calm", lines=lines)
    return story, {(who, way): proxies[who].pieces[way] for who in WHO for way in WAYS}


async def disturbed(options: NatsOptions, fault: Fault, who: str, way: Way, at: int) -> Story:
    """A loop with one line that goes wrong."""
    # A line on which something is late is not one that is lost.
    async with line(options, ping_interval=1.0 if fault == "delay" else 0.2) as (proxy, through):
        while True:
            proxy.plan(way, at, fault)
            story = await lived(options, Walk(), None, f"loop-{at}", lines={who: through})
            if proxy.struck:
                return story
            # It took fewer pieces than the calm one did: on a slow machine more of them come at once.
            at = at // 2
            assert at, f"nothing goes over the line of {who} {way}"


@asynccontextmanager
async def line(
    options: NatsOptions, ping_interval: float = 60.0
) -> AsyncGenerator[tuple[Proxy, NatsOptions]]:
    """A way to the server through a proxy."""
    async with proxied(options.servers[0]) as (proxy, url):
        yield proxy, msgspec.structs.replace(options, servers=(url,), ping_interval=ping_interval)


def is_same(story: Story, calm: Story) -> bool:
    """Whether a loop went as it goes when nothing goes wrong, whatever was done twice for it."""
    returned = [event for event in story.events if isinstance(event, ToolReturned)]
    return (
        len(returned) == 6
        and story.end == calm.end
        and not story.dead
        and normal_form(story.events) == normal_form(calm.events)
    )
