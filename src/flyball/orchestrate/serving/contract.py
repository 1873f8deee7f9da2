"""ContractStep: holds what a plan gives to the schema of the request's contract.

A step that asks the agent for the plan's own output is held to the schema as the model answers, and mended or
asked again as the contract allows. But anything may be a plan's last step: a check, a tool, a handler of
one's own. So what comes of the plan is looked at once more, whoever gave it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec import UNSET
from msgspec.json import encode

from flyball.constraint.validators import failure_of
from flyball.core.encodable import to_json
from flyball.core.flow import FlowNode
from flyball.core.spec import OutputSpec
from flyball.inference.request import Result
from flyball.orchestrate.flow.doing import Doing
from flyball.orchestrate.flow.parts import Done
from flyball.orchestrate.flow.steps import Step
from flyball.orchestrate.plan.ir import StepOutput
from flyball.orchestrate.schema_output import SchemaOutput, SchemaReader


@dataclass(frozen=True, eq=False)
class ContractStep(Step[Any, Any]):
    """Gives a value that follows a schema: what it is given, or what that says as JSON.

    It fails with the ConstraintFailure of what is wrong.
    """

    schema: SchemaOutput
    name: str = "output"
    kind: str = field(default="contract", init=False, repr=False)

    def node(self) -> FlowNode:
        """See `Part.node`."""
        return FlowNode(self.kind, self.name)

    async def perform(self, doing: Doing, value: Any) -> Done:
        """See `Part.perform`."""
        reader = SchemaReader(self.schema, OutputSpec())
        said = value.content if isinstance(value, Result | StepOutput) else value
        plain = to_json(said)
        if reader.restored(plain) is not UNSET:
            return Done(plain)
        look = reader.look(said if isinstance(said, str) else str(encode(plain), "utf-8"))
        if look.faults:
            raise failure_of(look.faults)
        return Done(look.value)
