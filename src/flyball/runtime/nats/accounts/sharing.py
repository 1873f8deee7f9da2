"""What a tenant's account lets the accounts of its model and tools workers use, and nobody else.

Those workers are users of accounts of their own, which keep nothing. A request of theirs is carried into the
tenant's account by the server, which puts a subject for the answer in the place of the one that was named:
whatever they name is a subject of their own account. What they may ask are the subjects of their role's
permissions, one by one; what they hear is told on from the tenant's account.

Nobody else can have it: who imports needs a token for it, which the tenant's key has signed for one account.
"""

from __future__ import annotations

from typing import Any

from flyball.runtime.nats.accounts.claims import activation_claims
from flyball.runtime.nats.accounts.keys import Key
from flyball.runtime.nats.accounts.permissions import APART, asked_of_tenant, elsewhere, heard_of_tenant
from flyball.runtime.nats.identity import API, Role

_MANY = f"{API}.CONSUMER.MSG.NEXT."
"""What is answered by more than one message."""
_OPEN = 30_000_000_000
"""Nanoseconds for which the server knows whom more answers are for: longer than a wish for messages lasts."""


def exports() -> list[dict[str, Any]]:
    """What the tenant's account has for the others."""
    asked = dict.fromkeys([one for role in APART for one in asked_of_tenant(role)])
    heard = dict.fromkeys([one for role in APART for one in heard_of_tenant(role)])
    services = [_service(subject) for subject in asked]
    streams = [{"name": one, "subject": one, "type": "stream", "token_req": True} for one in heard]
    return [*services, *streams]


def imports(role: Role, tenant: Key, account: str) -> list[dict[str, Any]]:
    """What the account of a role's workers has of the tenant's."""
    kinds = [("service", subject) for subject in asked_of_tenant(role)]
    kinds += [("stream", subject) for subject in heard_of_tenant(role)]
    return [
        {
            "name": subject,
            "subject": subject,
            "account": tenant.public,
            "token": activation_claims(tenant, account, subject, kind),
            "local_subject": elsewhere(subject),
            "type": kind,
        }
        for kind, subject in kinds
    ]


def _service(subject: str) -> dict[str, Any]:
    told = {"name": subject, "subject": subject, "type": "service", "token_req": True}
    if subject.startswith(_MANY):
        return told | {"response_type": "Stream", "response_threshold": _OPEN}
    return told | {"response_type": "Singleton"}
