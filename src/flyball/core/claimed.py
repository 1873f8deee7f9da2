"""What an identity claims: read from what a journal has of it, for whoever is told of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def claimed_did(identity: Mapping[str, Any] | None) -> str:
    """The DID that a run acts under, or an empty text."""
    return "" if identity is None else str(identity.get("did", ""))


def claimed_capabilities(identity: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The capabilities that an identity's credentials give to it, each once, whether they hold or not."""
    if identity is None:
        return ()
    found: list[str] = []
    credentials: list[dict[str, Any]] = identity.get("credentials", [])
    for credential in credentials:
        subject: dict[str, Any] = credential.get("credentialSubject", {})
        if subject.get("id") == identity.get("did"):
            found += [subject["capability"]] if "capability" in subject else subject.get("capabilities", [])
    return tuple(dict.fromkeys(found))
