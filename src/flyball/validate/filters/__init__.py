"""Filters: what looks through text for what should not pass: personal data, secrets, injections, harm.

- `violation`: what a filter found, without the text that it found.
- `pii`: personal data and keys, found and replaced.
- `injection`: text that would have a model take it for instructions.
- `moderation`, `categories`: text that says what should not be said, by its wording or by a judge's word.
- `rate`: how many requests and tokens may be sent in a time.
- `remembered`: what was said of texts that come again.
- `parts`: which texts a message has, and how they are read together.
- `encoded`: what a text says in base64 or in hexadecimal digits.
- `plain`, `alike`: a text in plain letters, and which ones look like others.

Rules: a filter is a pure function of a text (but for a judge's word, and a rate's count), and takes time in
proportion to its length: every repetition in a pattern that may begin anywhere has an end. What was found is
never told on, only that it was, and how often.
"""
