"""What middleware did around a model call, in words."""

from __future__ import annotations

from flyball.core.around import Around
from flyball.inference.request import Request
from flyball.orchestrate.projections.explanation.checked import compacted
from flyball.orchestrate.sent import Asking


def told(asking: Asking, around: Around | None, *, failed: bool) -> list[str]:
    """What was done to a request on its way to the model, in order; nothing where nothing was."""
    if around is None:
        return []
    if not around.sent:
        did = "failed" if failed else "answered"
        return [f"the middleware {around.skipped} {did}: the model was not called"]
    lines = [
        f"{', '.join(sent.by)} changed what was sent: {', '.join(_changed(asking.request, request))}"
        for sent, request in zip(around.sent, asking.sent(around), strict=True)
        if sent.by
    ]
    times = sum(sent.times for sent in around.sent)
    if times > 1:
        lines.append(f"middleware called the model {times} times")
    return lines + compacted(around.compactions)


def _changed(made: Request, sent: Request) -> list[str]:
    return [name for name in made.__struct_fields__ if getattr(made, name) != getattr(sent, name)]
