"""Any name that a server has becomes one that providers take, the same each time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import UserError
from flyball.tool.mcp.naming import fitting, fitting_names
from flyball.tool.options import check_name


@given(st.text(max_size=100), st.text(max_size=70))
def test_a_name_is_one_that_providers_take(name: str, prefix: str) -> None:
    fit = fitting(name, prefix)
    assert check_name(fit) == fit
    assert fitting(name, prefix) == fit


@given(st.from_regex(r"[a-zA-Z0-9_-]{1,30}", fullmatch=True), st.from_regex(r"[a-z]{1,20}", fullmatch=True))
def test_one_that_fits_stays_as_it_is(name: str, prefix: str) -> None:
    assert fitting(name) == name
    assert fitting(name, prefix) == f"{prefix}__{name}"


@given(st.lists(st.text(min_size=1, max_size=80), unique=True, max_size=6))
def test_no_two_tools_are_called_the_same(names: list[str]) -> None:
    try:
        here = fitting_names("s", names)
    except UserError:
        assert len({fitting(name) for name in names}) < len(names)
    else:
        assert list(here) == names
        assert len(set(here.values())) == len(names)


def test_long_names_that_begin_alike_stay_apart() -> None:
    here = fitting_names("s", ["x" * 70 + "a", "x" * 70 + "b"])
    assert len(set(here.values())) == 2
    with pytest.raises(UserError, match="'a/b' and 'a.b' of MCP server 's' would both be called 'a_b'"):  # noqa: RUF043
        fitting_names("s", ["a/b", "a.b"])
