"""Rights: what whoever asks may do, by the scopes of its token; and a person, by their roles besides."""

from __future__ import annotations

from flyball.adapters.http.problems import Forbidden
from flyball.adapters.http.tokens import Principal, Scope
from flyball.orchestrate.permissions import Permission, Person, Policy

_NEEDED = {
    Scope.READ: Permission.VIEW,
    Scope.RUN: Permission.SUBMIT_TASK,
    Scope.ADMIN: Permission.CANCEL_ANY,
}
"""What a person needs for what a token is for. What may be said to a loop hangs on whose it is."""


def person_of(principal: Principal, policy: Policy) -> Person | None:
    """The person who asks, where it is one whose roles count; None of a program, which has its scopes."""
    return policy.person(principal.name, principal.roles) if principal.roles else None


def check_scope(principal: Principal, policy: Policy, scope: Scope) -> None:
    """See that whoever asks may do something.

    Raises:
        Forbidden: its token is not for that.
        NotPermitted: it is a person's, and they may not.
    """
    if scope not in principal.scopes:
        raise Forbidden(f"the token {principal.token} has not the scope {scope}", scope=str(scope))
    if (person := person_of(principal, policy)) is not None and (what := _NEEDED.get(scope)) is not None:
        policy.permissions.check(person, what)
