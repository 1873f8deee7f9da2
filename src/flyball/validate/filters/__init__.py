"""Filters: what looks through text for what should not pass: personal data, secrets, attempts at injection.

- `violation`: what a filter found, without the text that it found.
- `pii`: personal data and keys, found and replaced.
- `injection`: text that would have a model take it for instructions.

Rules: a filter is a pure function of a text, and takes time in proportion to its length: every repetition in
a pattern that may begin anywhere has an end. What was found is never told on, only that it was, and how
often.
"""
