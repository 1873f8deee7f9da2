"""Answers that were given before: `engine` looks them up and keeps them, `key` says which requests are equal,
`store` and `sqlite` are where they are kept.

Rules:
- what is equal is decided by what is asked, and of which model: not by who asks, or when;
- only an answer that is whole is kept: no failure, nothing that was cut short, no stream before its end;
- an answer that comes from here says so, and counts no tokens: it has cost none;
- where a store fails, the model is asked: a cache makes no call fail that would have gone well.
"""
