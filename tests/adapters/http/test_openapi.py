"""The API is what its document says: schemathesis tries what the document allows, and what it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator
from schemathesis.specs.openapi.definitions import OPENAPI_31

from flyball.adapters.http.tokens import Tokens
from tests.adapters.http.attack import Attack, attacked
from tests.adapters.http.running import ASK, here, problem


@pytest.mark.parametrize("with_tokens", [False, True])
async def test_the_document_is_openapi(with_tokens: bool, tmp_path: Path) -> None:
    tokens, headers = None, dict[str, str]()
    if with_tokens:
        tokens = Tokens(tmp_path / "tokens.json")
        headers["Authorization"] = f"Bearer {tokens.add('ann')[0]}"
    async with here(tokens=tokens) as (client, _):
        document: dict[str, Any] = (await client.get("/openapi.json", headers=headers)).json()
    assert document["openapi"].startswith("3.1")
    Draft202012Validator(OPENAPI_31).validate(document)
    operations = [one for methods in document["paths"].values() for one in methods.values()]
    names = [one["operationId"] for one in operations]
    assert len(names) == len(set(names))
    assert all(one["summary"] and one["tags"] for one in operations)
    asking = {one["operationId"] for one in operations if one.get("security")}
    assert asking == (set(names) - {"health", "ready"} if with_tokens else set())


ATTACKS = {
    "names that are made up": Attack(examples=3),
    "names that are there, with tokens": Attack(examples=3, tokens=True, known="echo"),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
async def test_it_is_as_it_is_described(attack: Attack, tmp_path: Path) -> None:
    status, said = await attacked(attack, tmp_path)
    assert status == 0, said


@pytest.mark.slow
async def test_it_is_as_it_is_described_for_longer(tmp_path: Path) -> None:
    # And for as long as one likes: make attack-api.
    attack = Attack(examples=8, phases="coverage,fuzzing", tokens=True, known="typed", seed=2)
    status, said = await attacked(attack, tmp_path)
    assert status == 0, said


@pytest.mark.slow
async def test_a_defect_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flyball.orchestrate.service import Service

    async def broken(service: Service, loop_id: str) -> Any:
        raise OSError("the disk is gone")

    monkeypatch.setattr(Service, "load", broken)
    status, said = await attacked(Attack(examples=1), tmp_path)
    assert status == 1
    assert "Server error" in said


async def test_a_stream_that_cannot_begin_is_a_problem_and_no_stream() -> None:
    async with here() as (client, _):
        wrongs: list[dict[str, Any]] = [{}, {"messages": []}, {**ASK, "mode": "structured"}]
        for wrong in wrongs:
            answer = await client.post("/api/agents/echo/stream", json=wrong)
            assert problem(answer)[0] == 422, wrong
