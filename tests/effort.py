"""How many examples a property is tried with, as a share of what the profile gives.

A number written down at a property would hold for every profile; a share grows with `explore` and shrinks
with `brief`, as all the others do.
"""

from __future__ import annotations

from hypothesis import settings


def examples(of_a_hundred: int) -> settings:
    """So many examples where the profile says a hundred, and one at least."""
    return settings(max_examples=max(1, round(settings().max_examples * of_a_hundred / 100)))
