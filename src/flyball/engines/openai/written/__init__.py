"""Thoughts and tool calls that a model writes into its text, where its server does not take them out.

`calls` knows the forms that open models were taught, `splitting` cuts a growing text into thoughts, text and
what may be a call, and `reading` puts that around the reader of a stream. A text is a call only if it names a
tool that is on offer and its arguments are a JSON object; all else stays the text that it was, to the letter.
"""

from flyball.engines.openai.written.reading import read_written, reading_written

__all__ = ["read_written", "reading_written"]
