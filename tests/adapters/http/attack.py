"""schemathesis against a server, by the server's own description of itself: `make attack-api`.

    make attack-api ARGS="--examples 500 --seed 7"
    make attack-api ARGS="--checks all"             # also those whose findings are for people to judge

The server has agents that answer from the request alone, so that what is asked twice is answered twice alike.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from pydantic import BaseModel

from flyball import Agent, tool
from flyball.adapters.http.tokens import Tokens
from tests.adapters.http.running import ASK, agents, here

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "unsupported_method",
    "allow_header_conformance",
    "missing_required_header",
    "ignored_auth",
)
"""What must hold whatever comes. Whether data that fits its schema is taken also depends on what there is."""

_KNOWN = """
[parameters]
"path.agent" = "{agent}"
"path.loop_id" = "known"
"""


class Forecast(BaseModel):
    """What a typed agent gives."""

    city: str
    rain: bool


@tool
async def weather(city: str) -> str:
    """Weather in a city."""
    return f"fine in {city}"


class Attack(Struct, frozen=True):
    """What is tried: how many examples an operation has, from which seed, in which phases.

    With `known` the names of that agent and of a loop that is there are used; without, they are made up.
    """

    examples: int = 5
    seed: int = 1
    phases: str = "fuzzing"
    checks: Sequence[str] = CHECKS
    tokens: bool = False
    known: str = ""


async def attacked(attack: Attack, folder: Path) -> tuple[int, str]:
    """Attack a server; whether it held (0), and what schemathesis says."""
    tokens, headers = None, dict[str, str]()
    if attack.tokens:
        tokens = Tokens(folder / "tokens.json")
        headers["Authorization"] = f"Bearer {tokens.add('attacker')[0]}"
    # None of them waits for anybody: who asked would wait, too.
    served = [
        *[agent for agent in agents() if agent.config.name in ("echo", "counter")],
        Agent("test", name="test"),
        Agent("test", name="typed", output=Forecast),
        Agent("test", name="tooled", tools=[weather]),
    ]
    async with here(*served, tokens=tokens) as (client, _):
        known = {"loop_id": "known"}
        await client.post("/api/agents/tooled/requests", json=ASK, params=known, headers=headers)
        (folder / "schemathesis.toml").write_text(
            _KNOWN.format(agent=attack.known) if attack.known else "# nothing is known\n"
        )
        command = [
            str(Path(sys.executable).parent / "st"), "--config-file", "schemathesis.toml", "run",
            f"{client.base_url}/openapi.json",
            "--checks", ",".join(attack.checks),
            "--phases", attack.phases,
            "--max-examples", str(attack.examples),
            "--seed", str(attack.seed),
            "--generation-database", "none",
            "--exclude-operation-id", "follow_channel",  # it has no end
            "--request-timeout", "60",
            "--continue-on-failure", "--no-shrink", "--no-color", "--warnings", "off",
        ]  # fmt: skip
        for name, value in headers.items():
            command += ["--header", f"{name}:{value}"]
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env={**os.environ, "COLUMNS": "100"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        assert (await client.get("/health")).status_code == 200
    return process.returncode or 0, said.decode()


def main() -> int:
    """Attack, as long as wanted: without tokens, and with them."""
    parser = ArgumentParser(prog="make attack-api", description="Attack the HTTP API by its own document.")
    parser.add_argument("--examples", type=int, default=100, help="for each operation (100)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--phases", default="examples,coverage,fuzzing,stateful")
    parser.add_argument("--checks", default=",".join(CHECKS), help="or: all")
    options = parser.parse_args()
    failed = 0
    for tokens, known in ((False, ""), (False, "echo"), (True, "typed")):
        attack = Attack(
            options.examples, options.seed, options.phases, options.checks.split(","), tokens, known
        )
        with tempfile.TemporaryDirectory(prefix="flyball-attack-") as folder:
            status, said = asyncio.run(attacked(attack, Path(folder)))
        print(f"{'with' if tokens else 'without'} tokens, {known or 'no'} agent known:\n{said}", flush=True)
        failed |= status
    return failed


if __name__ == "__main__":
    sys.exit(main())
