"""How models are called: the Engine protocol and what passes through it.

Rules:
- everything above speaks to an `Engine` and knows no vendor;
- engines are found by name through entry points (`flyball.engines`): nothing imports them;
- a request is complete and encodable, so that it can be made in another process.
"""
