"""ModelRetry: how code asks the model to try again."""

from __future__ import annotations


class ModelRetry(Exception):  # noqa: N818 - the field's name for it; it is a request, not a failure
    """Raised by a tool or an output validator: the model should try again, and reads the message.

    Say in it what was wrong and what would be right. It is counted against the tool's (or the output's)
    retries.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
