"""Engine: the one seam between flyball and any model runtime."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol, runtime_checkable

from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.stream import StreamEvent


@runtime_checkable
class Engine(Protocol):
    """Answers requests.

    Guarantees: a failure is an InferenceFailure (or a ConfigurationFailure) of the taxonomy; cancelling the
    task that waits stops the work behind it as far as the runtime can; calls may overlap; a request is never
    changed. `flyball.testing.conformance.EngineConformance` checks an implementation.

    An engine may have an attribute `profile` (a `flyball.inference.profile.Profile`) that says what its model
    can do, and be a `flyball.inference.rendered.Renders` if it puts requests into words of its own. One that
    speaks to a real model asks `check_model_requests_allowed` before each call.
    """

    async def infer(self, request: Request) -> Result:
        """The whole answer."""
        ...

    def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        """The same answer in pieces, closed by a `Finish`; joined they give what `infer` would have given.

        Closing the iterator early (`aclose`) ends the call.
        """
        ...

    def model_info(self) -> ModelInfo:
        """Which model answers."""
        ...
