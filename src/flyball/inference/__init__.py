"""How models are called: the Engine protocol and what passes through it.

Rules:
- everything above speaks to an `Engine` and knows no vendor;
- engines are found by name through entry points (`flyball.engines`): nothing imports them;
- a request is complete and encodable, so that it can be made in another process;
- a streamed answer and a whole one are the same answer: pieces pass by, the joined message counts;
- real models are asked only where that is allowed (`permission`), so that no test calls one by accident.

`engine`, `request` and `stream` are the seam; `model_string`, `profile` and `registry` lead from a name to an
engine, `limiting` and `endpoints` to one that is asked no more than it may be. `retrying`, `fallback`,
`cache` and `routing` stand around engines and are engines, as `middleware` is: `wrapper` and `several` are
what they share, and `notes` what they say in an answer. `scripted` has engines that answer from code, with
`answers`, `cut` and `minimum` behind them. `embedder` is the other seam, of texts that become vectors, and
`hashed_embedder` one that needs no model.
"""
