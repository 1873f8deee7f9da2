"""What is looked at around a run: its input, what is sent, what comes back, and when it is enough.

- `guardrails`: refuse an input before the first turn, or a turn before its model call.
- `interceptors`: look at what is sent and at what comes back; let it pass, change it, or drop it.
- `conditions`: end a run after an answer, for a reason.

Each is a small object for `Agent(features=[...])`. Rules: a package of the band imports core and inference
and none of its neighbours; what is here decides, and leaves it to the loop to act on that.
"""
