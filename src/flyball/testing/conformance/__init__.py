"""Suites that check an implementation of one of flyball's protocols, for whoever writes one.

Each is a class of test methods to subclass, with hooks that make the thing to be tested. They import no test
runner and load when they are named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flyball.testing.conformance.engine import EngineConformance
    from flyball.testing.conformance.identity import IdentityProviderConformance
    from flyball.testing.conformance.journal import JournalConformance
    from flyball.testing.conformance.recorders import (
        CostRecorderConformance,
        EventLogConformance,
        MetricsConformance,
        TraceRecorderConformance,
    )
    from flyball.testing.conformance.retriever import RetrieverConformance
    from flyball.testing.conformance.runtime import RuntimeConformance

__all__ = [
    "CostRecorderConformance",
    "EngineConformance",
    "EventLogConformance",
    "IdentityProviderConformance",
    "JournalConformance",
    "MetricsConformance",
    "RetrieverConformance",
    "RuntimeConformance",
    "TraceRecorderConformance",
]

_HOMES = {
    "CostRecorderConformance": "recorders",
    "EngineConformance": "engine",
    "EventLogConformance": "recorders",
    "IdentityProviderConformance": "identity",
    "JournalConformance": "journal",
    "MetricsConformance": "recorders",
    "RetrieverConformance": "retriever",
    "RuntimeConformance": "runtime",
    "TraceRecorderConformance": "recorders",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
