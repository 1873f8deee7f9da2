"""A policy from a file: who may do what, and who has which roles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from flyball.core.errors import UserError

if TYPE_CHECKING:
    from flyball.orchestrate.permissions import Policy


def policy_of(file: Path | None) -> Policy:
    """The policy in a JSON file; the usual one without a file.

    Raises:
        UserError: the file cannot be read, or holds none.
    """
    from flyball.orchestrate.permissions import Policy

    if file is None:
        return Policy()
    try:
        return msgspec.json.decode(file.expanduser().read_bytes(), type=Policy)
    except OSError as error:
        raise UserError(f"--policy {file} cannot be read: {error.strerror or error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(
            f"--policy {file} holds no policy: {error}. It is an object with permissions (view, submit_task, "
            "cancel_own, cancel_any, approve) and roles (of each user)"
        ) from error
