"""Tables of the documentation that list what the code has: all of it, in its order, with its defaults."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from flyball.context.policy import ContextPolicy
from flyball.core.effects import Effect
from flyball.core.errors import SystemError  # noqa: A004 - pagantic's name for it
from flyball.core.events import Event, Stage
from flyball.core.limits import Limits, UsageLimits, UsageQuota
from flyball.core.messages import ResultKind
from flyball.core.signals import SignalType
from flyball.core.spec import OutputMode
from flyball.core.tools import Safety
from flyball.core.violation import Action
from flyball.inference.model_string import PROVIDERS
from flyball.inference.profile import UNKNOWN, Profile
from flyball.orchestrate.config import AgentConfig
from flyball.orchestrate.contracts import ExecutionHints, OutputContract, SystemRequest, SystemResponse
from flyball.orchestrate.lifecycle import Mode, Phase
from flyball.orchestrate.options import RunOptions
from flyball.orchestrate.state import Position
from flyball.tool.mcp import ServerOptions
from flyball.tool.options import ToolOptions, ToolPolicy
from tests.docs.pages import PageError
from tests.docs.tables import DOCS, column, table


def fields(struct: Any) -> list[str]:
    return list(struct.__struct_fields__)


def members(union: Any) -> list[str]:
    return [kind.__name__ for kind in get_args(union)]


@pytest.mark.parametrize(
    ("page", "header", "names"),
    [
        ("agents.md", ("option", "what it does"), list(RunOptions.__annotations__)),
        ("agents.md", ("option", "default"), fields(AgentConfig)),
        ("tools.md", ("safety",), list(Safety)),
        ("mcp.md", ("option", "default"), list(ServerOptions.__annotations__)),
        ("output.md", ("mode",), list(OutputMode)),
        ("control.md", ("signal",), list(SignalType)),
        ("engines.md", ("field",), fields(Profile)),
        ("retrieval.md", ("field", "default"), fields(ContextPolicy)),
        ("system.md", ("field", "default"), fields(SystemRequest)),
        ("system.md", ("field", "meaning"), fields(SystemResponse)),
        ("system.md", ("mode",), list(Mode)),
        ("system.md", ("phase",), list(Phase)),
        ("validation.md", ("action",), list(Action)),
        ("machine.md", ("position",), list(get_args(Position))),
        ("machine.md", ("event",), members(Event)),
        ("machine.md", ("effect",), members(Effect)),
    ],
)
def test_a_table_lists_all_there_is(page: str, header: tuple[str, ...], names: list[str]) -> None:
    assert column(page, *header) == names


def test_the_options_of_tools_are_all_listed() -> None:
    own = [name for name in ToolOptions.__annotations__ if name not in ToolPolicy.__annotations__]
    assert column("tools.md", "option", "default") == [*own, *ToolPolicy.__annotations__]


def test_limits_have_the_defaults_that_they_are_said_to_have() -> None:
    shown = {name: default for name, default, _ in table("control.md", "limit")}
    expected: dict[str, str] = {}
    for name in fields(Limits):
        inner = {"usage": UsageLimits(), "quota": UsageQuota()}.get(name)
        if inner is None:
            expected[name] = str(getattr(Limits(), name))
        else:
            expected |= {f"{name}.{own}": str(getattr(inner, own)) for own in fields(inner)}
    assert shown == expected


def test_profiles_of_unknown_models_are_as_said() -> None:
    shown = [(name, default) for name, default, _ in table("engines.md", "field")]
    assert shown == [(name, str(getattr(UNKNOWN, name))) for name in fields(Profile)]


def test_every_status_of_a_result_is_explained() -> None:
    said = {status.partition(",")[0] for _, _, status, _ in table("tools.md", "what happens")}
    assert said == set(ResultKind)


def test_every_provider_and_every_stage_is_named() -> None:
    engines = " ".join([f"{string} {meaning}" for string, meaning in table("engines.md", "string")])
    assert [name for name in PROVIDERS if name not in engines] == []
    system = (DOCS / "system.md").read_text(encoding="utf-8")
    assert [stage for stage in Stage if f"`{stage}`" not in system] == []


def test_inner_fields_of_requests_and_responses_are_named() -> None:
    request = {name: meaning for name, _, meaning in table("system.md", "field", "default")}
    response = {name: meaning for name, meaning in table("system.md", "field", "meaning")}  # noqa: C416
    for struct, meaning in (
        (ExecutionHints, request["hints"]),
        (OutputContract, request["output"]),
        (SystemError, response["error"]),
    ):
        missing = [name for name in fields(struct) if name not in meaning and name not in {"extra", "kind"}]
        assert missing == [], struct


def test_a_table_that_is_not_there_is_an_error() -> None:
    with pytest.raises(PageError, match=r"agents.md: 0 tables have a header that begins with colour"):
        table("agents.md", "colour")
