"""`flyball serve` and `flyball tokens`, as they are typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.cli.conftest import Flyball


def test_a_token_is_made_listed_and_revoked(flyball: Flyball, home: Path) -> None:
    assert flyball("tokens", "list").err == "there are no tokens: flyball tokens add NAME makes one\n"
    made = flyball(
        "tokens", "add", "ann", "--scope", "read", "--scope", "run", "--tenant", "acme", "--days", "2"
    )
    assert made.code == 0
    assert made.out.startswith("fly_")
    (token,) = flyball("tokens", "list", "--json").json
    assert (token["name"], token["scopes"], token["tenant"]) == ("ann", ["read", "run"], "acme")
    assert token["id"] in made.out
    shown = flyball("tokens", "list").out
    assert "ann" in shown
    assert made.out.strip().rpartition("_")[2] not in shown + (home / "tokens.json").read_text()
    assert flyball("tokens", "revoke", token["id"]).err == f"revoked: {token['id']} of ann\n"
    again = flyball("tokens", "revoke", token["id"])
    assert (again.code, again.out) == (2, "")
    assert "there is no token" in again.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tokens", "add", "ann", "--scope", "all"), "--scope all: there are read, run, signal, admin"),
        (("tokens", "add", "ann", "--days", "-1"), "--days -1: give a number from 0"),
        (("tokens", "add", "ann", "--tenant", "../x"), "a tenant's name has 1 to 63"),
        (("tokens", "add", ""), "a token's name has 1 to 100"),
        (("serve", "no_such_module"), "no_such_module"),
        (("serve", "-m", "nonsense"), "nonsense"),
        (("serve", "-m", "test", "--port", "-1"), "--port -1"),
        (("serve", "-m", "test", "--grace", "-1"), "--grace"),
        (("serve", "-m", "test", "--host", "0.0.0.0"), "there are no tokens"),
        (("serve", "-m", "test", "--nats", "nats://127.0.0.1:1", "--journal", "x.db"), "name two places"),
    ],
)
def test_what_cannot_be_is_told(flyball: Flyball, words: tuple[str, ...], said: str) -> None:
    told = flyball(*words)
    assert told.code in (2, 3)
    assert said in told.err
    assert told.err.startswith("flyball: CONFIG_")
