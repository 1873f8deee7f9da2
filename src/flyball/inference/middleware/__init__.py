"""Middleware: code around each model call of an agent, for `Agent(features=[...])`.

It sees the request on its way to the model and the answer on its way back: it may change either, call the
model several times, or not at all.

- `kinds`: what a middleware is, and ways to make one of functions.
- `logs`, `timing`, `max_tokens`: those that come with flyball.
- `engine`: an engine with middleware around it, which is all that a driver sees of it.
- `account`, `difference`: what became of a call, and in what a request differs from another, as data.

Rules: the first registered is the outermost. Whatever one does to a request is recorded with the answer, so
that it can be told what the model was really given; replay runs none of it again. It decides nothing about
the loop: what it makes of an answer is the answer.
"""
