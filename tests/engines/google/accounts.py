"""A service account of our own making, whose tokens come from a server of ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.engines.loopback import Answer, Loopback, Received, as_json


@cache
def _private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def write_account(folder: Path, server: Loopback, project: str | None = "their-project") -> Path:
    """The key file of a service account that asks this server for its tokens."""
    account = {
        "type": "service_account",
        "project_id": project,
        "private_key_id": "1",
        "private_key": _private_key(),
        "client_email": "agent@their-project.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": f"{server.url}/token",
    }
    path = folder / "account.json"
    path.write_bytes(msgspec.json.encode({key: value for key, value in account.items() if value}))
    return path


class Tokens:
    """Gives tokens out, `token-1` first, and all else to another handler."""

    def __init__(self, other: Callable[[Received], Answer], lasting: int = 3600) -> None:
        self.given = 0
        self._other = other
        self._lasting = lasting

    def __call__(self, got: Received) -> Answer:
        if got.path != "/token":
            return self._other(got)
        self.given += 1
        body: dict[str, Any] = {"access_token": f"token-{self.given}", "expires_in": self._lasting}
        return as_json({**body, "token_type": "Bearer"})
