"""What users and we test with: scripted engines, a clock that stands still, drivers that break things.

Public API, and nothing that a run in production imports. The conformance suites are in
`flyball.testing.conformance`.
"""

from flyball.inference.answers import tool_call, tool_call_answer
from flyball.inference.permission import allow_model_requests, forbid_model_requests
from flyball.inference.scripted import FunctionEngine, ScriptedEngine
from flyball.testing.bytes_journal import BytesJournal
from flyball.testing.clock import FakeClock
from flyball.testing.split import CALM, ROUGH, Chaos, SplitDriver

__all__ = [
    "CALM",
    "ROUGH",
    "BytesJournal",
    "Chaos",
    "FakeClock",
    "FunctionEngine",
    "ScriptedEngine",
    "SplitDriver",
    "allow_model_requests",
    "forbid_model_requests",
    "tool_call",
    "tool_call_answer",
]
