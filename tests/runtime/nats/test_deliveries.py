"""Deliveries: how long a message waits until it is given out again."""

from __future__ import annotations

from flyball.runtime.nats.deliveries import pause_after, wait_after


def test_a_pause_grows_and_has_an_end() -> None:
    pauses = [pause_after(tries) for tries in range(1, 40)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.2, 10.0)
    assert pause_after(10**6) == 10.0


def test_what_waits_is_tried_soon_and_then_every_few_minutes() -> None:
    assert [wait_after(tries) for tries in range(1, 5)] == [0.2, 0.4, 0.8, 1.6]
    for tries, longest in ((5, 30.0), (6, 60.0), (9, 300.0), (10**6, 300.0)):
        waited = {wait_after(tries) for _ in range(100)}
        assert 0.75 * longest <= min(waited) < max(waited) <= longest, "many are not tried in one moment"
