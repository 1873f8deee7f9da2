"""How long tests wait for what has to come."""

from __future__ import annotations

PATIENCE = 120.0
"""Seconds after which it counts as lost.

What comes takes milliseconds, so nobody waits for this long but who waits in vain. It is a wrong bound that
makes a test fail by itself: on a machine that is busy with other things, whole seconds pass between two
moments of a process. It is less than pytest's own time-out of a test, which shows no reason and ends all.
"""
