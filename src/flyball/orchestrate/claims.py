"""Claims on loops, of journals that may know of none; see `Claimable`."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from flyball.orchestrate.journal import Claim, Journal


class DrivenElsewhere(Exception):  # noqa: N818 - says what is the case, to a runtime alone
    """Somebody else has claimed the loop."""


@contextmanager
def kept(claim: Claim | None) -> Generator[None]:
    """A block after which a claim is kept; one that is left by an exception lets go of it."""
    try:
        yield
    except BaseException:
        if claim is not None:
            claim.release()
        raise


def knows_claims(journal: Journal) -> bool:
    """Whether a journal knows of claims at all."""
    return hasattr(journal, "claim")


def claim_on(journal: Journal, loop_id: str) -> Claim | None:
    """A claim on a loop, if its journal knows of such, and nobody else has one."""
    claim = getattr(journal, "claim", None)
    return None if claim is None else claim(loop_id)


def is_claimed(journal: Journal, loop_id: str) -> bool:
    """Whether somebody is known to drive a loop."""
    claimed = getattr(journal, "is_claimed", None)
    return claimed is not None and claimed(loop_id)
