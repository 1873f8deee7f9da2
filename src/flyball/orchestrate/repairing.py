"""What an agent's features do about answers that cannot be read, as its spec says it, and by which model."""

from __future__ import annotations

from msgspec.structs import replace

from flyball.core.errors import UserError
from flyball.core.spec import OutputSpec, Purpose, RepairSpec
from flyball.inference.engine import Engine
from flyball.inference.profile import profile_for
from flyball.inference.registry import resolve_engine
from flyball.orchestrate.features import Stages


def provider_of(engine: Engine) -> str:
    """Who serves an engine's model; one that does not say so is in no price list, whatever it is called."""
    return engine.model_info().provider or "unsaid"


def with_repairs(
    output: OutputSpec, stages: Stages, engine: Engine
) -> tuple[OutputSpec, dict[Purpose, Engine]]:
    """An output's spec with what an agent's features do about answers that cannot be read, and with which.

    Nothing is done where all answers can be read, or where repairs are not allowed.

    Raises:
        UserError: two models are to do it.
        ConfigurationFailure: there is no such model.
    """
    if not (stages.output_repairs or stages.model_repairs) or not (output.checked and output.repair):
        return output, {}
    if stages.output_repairs:
        output = replace(output, validated=True)
    repair, *more = stages.model_repairs or (None,)
    if repair is None:
        return output, {}
    if more:
        raise UserError("one model puts answers right: leave all ModelRepairs but one out")
    if repair.model is None:
        native = profile_for(engine).native_schema
        return replace(output, repairer=RepairSpec(repair.instructions, "", "", repair.settings, native)), {}
    other = resolve_engine(repair.model)
    name = repair.model if isinstance(repair.model, str) else other.model_info().name
    provider = provider_of(other) if stages.trackers and not isinstance(repair.model, str) else ""
    native = profile_for(other).native_schema
    spec = RepairSpec(repair.instructions, name, provider, repair.settings, native)
    return replace(output, repairer=spec), {"repair": other}
