"""What a source raises."""

from __future__ import annotations


class SourceError(Exception):
    """This place cannot give the file, for a reason in one line; another place may."""
