"""What `--help` says of options, as it is drawn: a text is broken where the terminal ends, and only there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions


def drawn(console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
    """Draw a panel; the lines that the source breaks its texts into are not seen."""
    from cyclopts.help import DefaultFormatter, InlineText
    from rich.text import Text

    for entry in panel.entries:
        told = entry.description
        if isinstance(told, InlineText) and isinstance(told.primary_renderable, Text):
            told.primary_renderable = Text(" ".join(told.primary_renderable.plain.split()))
    DefaultFormatter()(console, options, panel)
