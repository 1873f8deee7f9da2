"""Errors as the user sees them: one line on stderr, or with `--json` a document on stdout."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from flyball.adapters.cli.exits import RUN, exit_code
from flyball.adapters.cli.screen import one_line, write_json
from flyball.core.errors import FlyballError, SystemError  # noqa: A004 - pagantic's name for it


def report(error: FlyballError | SystemError, *, as_json: bool, run_id: str = "", hint: str = "") -> int:
    """Tell an error; returns the exit code.

    `run_id` names the run that it was an error of, `hint` what a person may do on this command line.
    """
    told = error.record() if isinstance(error, FlyballError) else error
    if as_json:
        from flyball.orchestrate.contracts.usage import write_error

        document: dict[str, Any] = {"error": write_error(told)}
        if run_id or (told.details or {}).get(RUN):
            document["loop_id"] = run_id or (told.details or {})[RUN]
        write_json(document)
    else:
        told_more = [f"see: flyball why {run_id}"] if run_id else []
        more = f" ({'; '.join([*([hint] if hint else []), *told_more])})" if hint or run_id else ""
        with suppress(OSError):  # then there is nobody to tell, but by the exit code
            sys.stderr.write(f"flyball: {told.code}: {one_line(told.message)}{more}\n")
    return exit_code(told)
