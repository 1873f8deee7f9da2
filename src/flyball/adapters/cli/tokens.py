"""`flyball tokens`: who may come in over HTTP."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from flyball.adapters.cli.others import adapter
from flyball.adapters.cli.screen import err, one_line, out, write_json
from flyball.adapters.cli.serve import tokens_file
from flyball.core.errors import UserError

_SCOPES = ("read", "run", "signal", "admin")
_DAY = 86400.0


def add_token(
    name: Annotated[str, Parameter(name="NAME")],
    /,
    *,
    scope: tuple[str, ...] = ("read", "run", "signal"),
    role: tuple[str, ...] = (),
    tenant: str = "",
    days: float = 0.0,
    tokens: Path | None = None,
    json: bool = False,
    debug: bool = False,
) -> int:
    """Make a token. It is shown once: only its hash is kept.

    Args:
        name: Who has it: signals are recorded as from this name.
        scope: What it is for: read, run, signal, admin; may be said several times. Without it, all but admin.
        role: What its owner is here (admin, reviewer, …); may be said several times. Then it is a person's,
            who may do what their roles allow; without it, a program's, which may do what its scopes allow.
        tenant: Whose loops it is for; without it, those of nobody in particular.
        days: For how many days it is good; without it, until it is revoked.
        tokens: The file; without it, tokens.json in the user's data folder.
        json: Print one JSON document on stdout.
        debug: Show the traceback of an error.
    """
    del debug
    given = [one.strip() for text in scope for one in text.split(",") if one.strip()]
    wrong = [one for one in given if one not in _SCOPES]
    if wrong or not given:
        raise UserError(f"--scope {', '.join(wrong) or '(none)'}: there are {', '.join(_SCOPES)}")
    if not 0 <= days < 100_000:
        raise UserError(f"--days {days:g}: give a number from 0")
    expires = time.time() + days * _DAY if days else 0.0
    text, token = _tokens(tokens).add(name, scopes=given, tenant=tenant, expires=expires, roles=role)
    if json:
        write_json({"token": text, "id": token.id, "name": token.name})
        return 0
    out().print(text, soft_wrap=True)
    err().print(f"for {token.name}: keep it, it is not shown again. Its id is {token.id}", style="dim")
    return 0


def list_tokens(*, tokens: Path | None = None, json: bool = False, debug: bool = False) -> int:
    """List the tokens, without their secrets.

    Args:
        tokens: The file; without it, tokens.json in the user's data folder.
        json: Print one JSON document on stdout.
        debug: Show the traceback of an error.
    """
    del debug
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    found = _tokens(tokens).list()
    if json:
        write_json(
            [
                {
                    "id": one.id,
                    "name": one.name,
                    "scopes": [str(scope) for scope in one.scopes],
                    "roles": list(one.roles),
                    "tenant": one.tenant,
                    "created": one.created,
                    "expires": one.expires or None,
                }
                for one in found
            ]
        )
        return 0
    if not found:
        err().print("there are no tokens: flyball tokens add NAME makes one", style="dim")
        return 0
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in ("id", "name", "scopes", "roles", "tenant", "created", "expires"):
        table.add_column(column)
    for one in found:
        expires = _day(one.expires) if one.expires else "never"
        gone = 0 < one.expires <= time.time()
        table.add_row(
            one.id,
            one_line(one.name, 40),
            " ".join(one.scopes),
            " ".join(one.roles) or "-",
            one.tenant or "-",
            _day(one.created),
            f"[red]{expires}[/red]" if gone else expires,
        )
    out().print(table)
    return 0


def revoke_token(
    identifier: Annotated[str, Parameter(name="ID")],
    /,
    *,
    tokens: Path | None = None,
    debug: bool = False,
) -> int:
    """Take a token away. Servers refuse it from now on.

    Args:
        identifier: The token's id, as `flyball tokens list` shows it.
        tokens: The file; without it, tokens.json in the user's data folder.
        debug: Show the traceback of an error.
    """
    del debug
    token = _tokens(tokens).revoke(identifier)
    err().print(f"revoked: {token.id} of {one_line(token.name, 100)}")
    return 0


def _tokens(given: Path | None) -> Any:
    return adapter("tokens")(tokens_file(given))


def _day(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d")
