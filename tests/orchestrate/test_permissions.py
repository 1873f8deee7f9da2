"""Who may do what."""

from __future__ import annotations

import pytest

from flyball.core.errors import NotPermitted
from flyball.core.signals import SignalType
from flyball.orchestrate.permissions import Permission, Permissions, Person, Policy

ANN, BEN, ROOT = Person("ann"), Person("ben", ("reviewer",)), Person("root", ("admin",))
DECIDING = (SignalType.APPROVE, SignalType.REJECT)
OTHERS = [kind for kind in SignalType if kind not in DECIDING]


def may(who: Person, kind: SignalType, owner: str, permissions: Permissions | None = None) -> bool:
    try:
        (permissions or Permissions()).check_signal(who, kind, owner)
    except NotPermitted:
        return False
    return True


@pytest.mark.parametrize("kind", OTHERS)
def test_what_is_ones_own_may_be_stopped(kind: SignalType) -> None:
    assert may(ANN, kind, "ann")
    assert not may(ANN, kind, "ben")
    assert not may(ANN, kind, "")
    assert may(ROOT, kind, "ann")
    assert may(ROOT, kind, "")


@pytest.mark.parametrize("kind", DECIDING)
def test_approving_is_a_role_of_its_own(kind: SignalType) -> None:
    assert not may(ANN, kind, "ann")
    assert may(BEN, kind, "ann")
    assert may(ROOT, kind, "ann")


def test_nobody_owns_what_is_nobodys() -> None:
    assert not may(Person(""), SignalType.CANCEL, "")


def test_own_loops_can_be_kept_from_their_owners() -> None:
    assert not may(ANN, SignalType.CANCEL, "ann", Permissions(cancel_own=False))


def test_entries_are_roles_persons_or_everybody() -> None:
    permissions = Permissions(submit_task=("user:ann", "reviewer"), view=())
    assert permissions.allow(ANN, Permission.SUBMIT_TASK)
    assert permissions.allow(BEN, Permission.SUBMIT_TASK)
    assert not permissions.allow(Person("user:ann"), Permission.SUBMIT_TASK)
    assert not permissions.allow(ROOT, Permission.SUBMIT_TASK)
    assert not permissions.allow(ROOT, Permission.VIEW)


def test_a_role_that_is_given_twice_is_one() -> None:
    policy = Policy(roles={"ben": ("reviewer",)})
    assert policy.person("ben", ("reviewer", "cook")).roles == ("reviewer", "cook")


def test_a_refusal_says_who_may() -> None:
    with pytest.raises(NotPermitted, match=r"ann \(no roles\) may not approve: admin, reviewer may"):
        Permissions().check(ANN, Permission.APPROVE)
