"""Routers: engines that choose, for each call, which of several models is asked.

`round_robin` takes them in turn, `capability` by what a request needs, `classifier` by a function's or a
model's word, `threshold` by a number; `router` is what they share.

Rules:
- a router is an engine, and promises what engines do; what it can do before it has chosen is its profile's to
  say, and each of them documents it;
- the choice is made anew for each call, also within a run; the answer's `model` says who was asked, and where
  a route has a name its message's `extra` says that, as `route`;
- a function that decides and fails fails the call, by an error of the taxonomy.
"""
