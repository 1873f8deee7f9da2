"""Deliveries: how long a message waits until it is given out again."""

from __future__ import annotations

from flyball.runtime.nats.deliveries import pause_after


def test_a_pause_grows_and_has_an_end() -> None:
    pauses = [pause_after(tries) for tries in range(1, 40)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.2, 10.0)
    assert pause_after(10**6) == 10.0
