"""Claims: what is said of a key by the key that signs it, as a JWT that NATS servers read (version 2)."""

from __future__ import annotations

import time
from base64 import b32encode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from flyball.runtime.nats.accounts.keys import Key
from flyball.runtime.nats.accounts.quota import Quota
from flyball.runtime.nats.identity import claims_in

_HEADER = {"typ": "JWT", "alg": "ed25519-nkey"}
_VERSION = 2
_ENDLESS = -1


def operator_claims(operator: Key, name: str, system: str) -> str:
    """What an operator says of itself: whom servers trust, and which account is theirs."""
    return _signed(
        operator, operator.public, name, {"type": "operator", "version": _VERSION, "system_account": system}
    )


def account_claims(
    operator: Key,
    account: str,
    name: str,
    quota: Quota | None,
    revoked: Mapping[str, int] | None = None,
    *,
    exports: Sequence[Mapping[str, Any]] = (),
    imports: Sequence[Mapping[str, Any]] = (),
) -> str:
    """What an operator says of an account: how much it may have; without a quota, it is the servers' own.

    `revoked`: for users' keys, the time before which what was said of them counts no longer. An account with
    `imports` keeps nothing: of the quota it has the number of connections.
    """
    most = {"subs": _ENDLESS, "data": _ENDLESS, "payload": _ENDLESS, "imports": _ENDLESS, "exports": _ENDLESS}
    limits: dict[str, Any] = {**most, "wildcards": True, "conn": _ENDLESS, "leaf": _ENDLESS}
    if quota is not None and imports:
        limits["conn"] = _limit(quota.connections)
    elif quota is not None:
        limits |= {
            "conn": _limit(quota.connections),
            "disk_storage": _limit(quota.disk),
            "mem_storage": quota.memory,
            "streams": _limit(quota.streams),
            "consumer": _limit(quota.consumers),
        }
    body: dict[str, Any] = {"type": "account", "version": _VERSION, "limits": limits}
    if quota is None:
        body["exports"] = _SYSTEM_EXPORTS
    if exports:
        body["exports"] = list(exports)
    if imports:
        body["imports"] = list(imports)
    if revoked:
        body["revocations"] = dict(revoked)
    return _signed(operator, account, name, body)


def user_claims(
    account: Key,
    user: str,
    name: str,
    *,
    publish: Sequence[str] = (),
    subscribe: Sequence[str] = (),
    tags: Sequence[str] = (),
    seconds: float = 0.0,
) -> str:
    """What an account says of a user: what it may do (without lists, everything), and for how long."""
    body: dict[str, Any] = {"type": "user", "version": _VERSION}
    body |= {"subs": _ENDLESS, "data": _ENDLESS, "payload": _ENDLESS}
    if publish or subscribe:
        body |= {"pub": {"allow": list(publish)}, "sub": {"allow": list(subscribe)}}
    if tags:
        body["tags"] = list(tags)
    return _signed(account, user, name, body, expires=int(time.time() + seconds) if seconds else 0)


def activation_claims(exporter: Key, importer: str, subject: str, kind: str) -> str:
    """That an account lets another one import a subject of it: a `kind` of "service" or "stream"."""
    body = {"type": "activation", "version": _VERSION, "subject": subject, "kind": kind}
    return _signed(exporter, importer, subject, body)


def deletion_claims(operator: Key, accounts: Sequence[str]) -> str:
    """That accounts are to be no more."""
    body = {"type": "generic", "version": _VERSION, "accounts": list(accounts)}
    return _signed(operator, operator.public, "delete", body)


def quota_in(jwt: str) -> Quota:
    """The quota that an account's claims give it."""
    limits = claims_in(jwt)["nats"].get("limits", {})
    return Quota(
        disk=_unlimited(limits.get("disk_storage", 0)),
        memory=max(0, limits.get("mem_storage", 0)),
        streams=_unlimited(limits.get("streams", 0)),
        consumers=_unlimited(limits.get("consumer", 0)),
        connections=_unlimited(limits.get("conn", 0)),
    )


def revoked_in(jwt: str) -> dict[str, int]:
    """The users that an account's claims let in no more."""
    return dict(claims_in(jwt)["nats"].get("revocations") or {})


def shares(jwt: str) -> list[str]:
    """The subjects that an account's claims let others use, sorted."""
    return sorted([one["subject"] for one in claims_in(jwt)["nats"].get("exports") or ()])


def creds_text(jwt: str, user: Key) -> str:
    """Credentials as they stand in a file: what is said of a user, and the user's key."""
    return (
        f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
        "************************* IMPORTANT *************************\n"
        "Who has this file is this user: keep it to yourself.\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
    )


def _limit(number: int) -> int:
    return number or _ENDLESS


def _unlimited(number: int) -> int:
    return max(0, number)


def _signed(issuer: Key, subject: str, name: str, body: Mapping[str, Any], expires: int = 0) -> str:
    claims: dict[str, Any] = {
        "iat": int(time.time()),
        "iss": issuer.public,
        "name": name,
        "nats": body,
        "sub": subject,
    }
    if expires:
        claims["exp"] = expires
    claims["jti"] = b32encode(sha256(msgspec.json.encode(claims)).digest()).decode().rstrip("=")
    signed = f"{_part(msgspec.json.encode(_HEADER))}.{_part(msgspec.json.encode(claims))}"
    return f"{signed}.{_part(issuer.sign(signed.encode()))}"


def _part(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


_SYSTEM_EXPORTS = [
    {
        "name": "account-monitoring-streams",
        "subject": "$SYS.ACCOUNT.*.>",
        "type": "stream",
        "account_token_position": 3,
    },
    {
        "name": "account-monitoring-services",
        "subject": "$SYS.REQ.ACCOUNT.*.*",
        "type": "service",
        "response_type": "Stream",
        "account_token_position": 4,
    },
]
