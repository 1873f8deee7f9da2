"""`flyball dead`: what no worker could do anything with."""

from __future__ import annotations

from datetime import datetime

from flyball.adapters.cli.cluster import CLUSTER, Cluster
from flyball.adapters.cli.running import run
from flyball.adapters.cli.screen import one_line, out, write_json
from flyball.core.errors import UserError


def dead(
    *numbers: int,
    requeue: bool = False,
    drop: bool = False,
    all_: bool = False,
    cluster: Cluster = CLUSTER,
    json: bool = False,
    debug: bool = False,
) -> int:
    """List the messages that were put aside, with the reasons; --requeue gives them out again, --drop drops.

    Args:
        numbers: Which ones; all that there are, for a list.
        requeue: Give them to the workers again, once what was wrong is put right.
        drop: Let go of them: nobody does them, and they are gone.
        all_: With --requeue or --drop: all of them; with --requeue, all that can be read.
        cluster: The NATS server.
        json: Print one JSON document on stdout.
        debug: Show the traceback of an error.
    """
    del debug
    if requeue and drop:
        raise UserError("--requeue or --drop: not both")
    if (requeue or drop) and not numbers and not all_:
        raise UserError(f"--{'requeue' if requeue else 'drop'} which ones? Give their numbers, or --all")
    return run(_dead(numbers, cluster, requeue=requeue, drop=drop, as_json=json))


async def _dead(
    numbers: tuple[int, ...], cluster: Cluster, *, requeue: bool, drop: bool, as_json: bool
) -> int:
    from flyball.runtime.nats import NatsRuntime
    from flyball.runtime.nats.dead import UNREADABLE, dead_letters
    from flyball.runtime.nats.dead import drop as drop_one
    from flyball.runtime.nats.dead import requeue as requeue_one

    async with await NatsRuntime.open(cluster.options()) as runtime:
        found = [one for one in await dead_letters(runtime.bus) if not numbers or one[0] in numbers]
        missing = sorted(set(numbers) - {number for number, _ in found})
        if missing:
            raise UserError(f"nothing with the number {missing[0]} was put aside")
        if requeue and not numbers:
            found = [(number, one) for number, one in found if one.code != UNREADABLE]
        for number, one in found if requeue or drop else ():
            await (drop_one(runtime.bus, number) if drop else requeue_one(runtime.bus, number, one))
    if as_json:
        write_json(
            [
                {
                    "number": number,
                    "subject": one.shown,
                    "code": one.code,
                    "reason": one.reason,
                    "at": one.at,
                }
                for number, one in found
            ]
        )
        return 0
    for number, one in found:
        when = datetime.fromtimestamp(one.at).astimezone().strftime("%Y-%m-%d %H:%M:%S")
        did = "requeued  " if requeue else "dropped  " if drop else ""
        what = f"{one_line(one.shown, 300)}  {one_line(one.code)}: {one_line(one.reason, 300)}"
        out().print(f"{number:>4}  {when}  {did}{what}")
    if not found:
        out().print("nothing was put aside", style="dim")
    return 0
