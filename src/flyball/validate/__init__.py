"""What is looked at around a run: its input, what is sent, what comes back, and when it is enough.

- `guardrails`: refuse an input before the first turn, or a turn before its model call.
- `interceptors`: look at what is sent and at what comes back; let it pass, change it, or drop it.
- `filters`, `filter_chain`, `redaction`: personal data, keys, attempts at injection, harm, and too much at
  once, found in text and around model calls.
- `conditions`: end a run after an answer, for a reason.
- `rules`, `semantic`: whether an output holds to named checks, and whether it means what was asked for.
- `repair`, `reflection`: what is done about an output that cannot be read, or could be better.

Most are small objects for `Agent(features=[...])` or `Agent(validators=[...])`. Rules: a package of the band
imports core and inference and none of its neighbours; what is here decides, and leaves it to the loop to act
on that.
"""
