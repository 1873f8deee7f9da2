"""What somebody who talks remembers, and what a model is sent of a conversation that grows.

What is kept:
- `buffer`: what was said, as much of it as a policy keeps; every view of it is a valid history.
- `session`, `working`: what was decided, and what the turn at hand works with.
- `conversation`, `policy`: these three together, how much of them is kept, and what outlives them.

What is sent, by small objects for `Agent(features=[...])`:
- `processor`: a user's function over the messages of each model call, and what becomes of its result.
- `valid`, `normalize`: messages made such that every provider takes them.
- `windows`: the last of a history, by pairs or by tokens.
- `compactor`, `summaries`: when a model is asked to sum up, and how much stays as it was said.
- `overflow`: what is done when a model says that it was too much.

Rules: a feature changes what is sent, and never what was said; no tool call is parted from its result, nobody
speaks twice in a row, the leading system message stays. A package of the band imports core and inference and
none of its neighbours.
"""
