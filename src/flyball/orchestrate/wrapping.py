"""What stands around an agent's model: who hears of its calls, and its middleware."""

from __future__ import annotations

from flyball.inference.engine import Engine
from flyball.orchestrate.features import Stages


def wrapped(engine: Engine, stages: Stages, model: str, provider: str = "") -> Engine:
    """What an agent asks: its model, of whose calls its trackers hear, with its middleware around that.

    So a tracker hears of each call that is really made, however often middleware makes it. It is the engine
    itself where there is neither. `model` and `provider` are the model as loops record it.
    """
    if stages.trackers:
        from flyball.observe.metering import metered

        engine = metered(engine, stages.trackers, model, provider)
    if stages.middleware:
        from flyball.inference.middleware.engine import around

        engine = around(engine, stages.middleware)
    return engine
