"""RecordedPart: a flow's structure as it is recorded, to be read without the code behind it."""

from __future__ import annotations

from flyball.core.flow import FlowNode
from flyball.orchestrate.flow.parts import Part


class RecordedPart(Part):
    """A part of a flow that is only read: what its steps gave is plain JSON."""

    def __init__(self, node: FlowNode) -> None:
        self._node = node
        self.kind = node.kind
        self.name = node.name
        self._inner = tuple([RecordedPart(step) for step in node.steps])

    @property
    def inner(self) -> tuple[Part, ...]:
        """See `Part.inner`."""
        return self._inner

    @property
    def until(self) -> Part | None:
        """See `Part.until`."""
        return None if self._node.until is None else RecordedPart(self._node.until)

    def node(self) -> FlowNode:
        """See `Part.node`."""
        return self._node

    def grown(self, node: FlowNode) -> Part:
        """See `Part.grown`."""
        return self if node == self._node else RecordedPart(node)
