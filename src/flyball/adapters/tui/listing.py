"""Listing: rows that unfold, as many as there are. The one widget that shows what others wrote.

Rules:
- Only what can be seen is drawn: ten thousand rows cost as much as ten.
- No markup is read: a line is pieces of text, each with a style.
- Who looks at the end, or at the first row, is kept there when more comes; who looks elsewhere, at that row.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import ClassVar, get_args

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from flyball.adapters.tui.lines import Line, Look
from flyball.adapters.tui.rows import Row

_KEPT = 2_000
"""Rows whose lines are kept in mind."""


class Listing(ScrollView, can_focus=True):
    """Shows rows, one of which is the chosen one. Enter unfolds it, or opens what it leads to."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"listing--{name}" for name in (*get_args(Look), "chosen")}
    DEFAULT_CSS = """
    Listing {
        overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; background: $background;
        & > .listing--plain { color: $foreground; }
        & > .listing--dim { color: $foreground; text-style: dim; }
        & > .listing--strong { color: $foreground; text-style: bold; }
        & > .listing--code { color: $text-secondary; }
        & > .listing--person { color: $text-success; text-style: bold; }
        & > .listing--model { color: $text-primary; text-style: bold; }
        & > .listing--tool { color: $text-accent; text-style: bold; }
        & > .listing--good { color: $text-success; }
        & > .listing--bad { color: $text-error; }
        & > .listing--warn { color: $text-warning; }
        & > .listing--chosen { background: $background; }
        &:focus > .listing--chosen { background: $panel; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Up", show=False),
        Binding("down", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "move(-1000000000)", "First", show=False),
        Binding("end", "move(1000000000)", "Last", show=False),
        Binding("enter,space", "open", "Open", show=False),
    ]

    class Opened(Message):
        """A row was asked for that has nothing to unfold."""

        def __init__(self, listing: Listing, row: Row) -> None:
            self.listing = listing
            self.row = row
            super().__init__()

        @property
        def control(self) -> Listing:
            """The listing that it is in."""
            return self.listing

    class Moved(Message):
        """Another row is the chosen one."""

        def __init__(self, listing: Listing) -> None:
            self.listing = listing
            super().__init__()

        @property
        def control(self) -> Listing:
            """The listing that it is in."""
            return self.listing

    def __init__(self, *, empty: str = "", follows: bool = False, id: str | None = None) -> None:  # noqa: A002 - textual's name
        """Make an empty one.

        Args:
            empty: what is said where there are no rows.
            follows: whether the end is shown first, and kept in sight as more comes.
            id: the widget's id.
        """
        super().__init__(id=id)
        self.empty = empty
        self.rows: list[Row] = []
        self._follows = follows
        self._opened: dict[str, int] = {}
        self._cursor = 0
        self._tops: list[int] = []
        self._height = 0
        self._wide = 10
        """Cells that lines have: the place of each row hangs on it."""
        self._lines: dict[str, tuple[Row, int, int, Sequence[Line]]] = {}
        self._styles: dict[str, Style] = {}

    def show(self, rows: Iterable[Row], changed: int = 0) -> None:
        """Show these rows; the first `changed` are those that are shown already."""
        chosen, is_last = self.chosen, self._cursor >= len(self.rows) - 1
        self.rows = list(rows)
        if self._follows and is_last:
            self._cursor = max(0, len(self.rows) - 1)
        elif self._cursor and chosen is not None and (at := self._index(chosen.key)) is not None:
            self._cursor = at
        self._cursor = min(self._cursor, max(0, len(self.rows) - 1))
        self._lay_out(changed)

    @property
    def chosen(self) -> Row | None:
        """The row that the cursor is on."""
        return self.rows[self._cursor] if self._cursor < len(self.rows) else None

    def choose(self, index: int) -> None:
        """Put the cursor on a row, and bring it into sight."""
        index = max(0, min(index, len(self.rows) - 1))
        self._cursor = index
        self._into_sight()
        self.refresh()
        self.post_message(self.Moved(self))

    def shown(self, index: int) -> Sequence[Line]:
        """The lines of a row, as they are drawn now."""
        row, width = self.rows[index], self._wide
        opened = self._opened.get(row.key, 0)
        kept = self._lines.get(row.key)
        if kept is not None and kept[0] is row and kept[1:3] == (width, opened):
            return kept[3]
        lines = row.lines(width, opened)
        if len(self._lines) > _KEPT:
            self._lines.clear()
        self._lines[row.key] = (row, width, opened, lines)
        return lines

    def action_move(self, by: int) -> None:
        """Go to another row; within one that is higher than what can be seen, go on in it."""
        if not self.rows:
            return
        top, bottom = self._extent(self._cursor)
        seen, high = round(self.scroll_offset.y), self.size.height
        if by == 1 and bottom > seen + high:
            self._see(min(seen + high // 2, bottom - high))
        elif by == -1 and top < seen:
            self._see(max(seen - high // 2, top))
        else:
            self.choose(self._cursor + by)

    def action_page(self, by: int) -> None:
        """Go a page further."""
        seen = round(self.scroll_offset.y) + by * max(1, self.size.height - 1)
        seen = max(0, min(seen, max(0, self._height - self.size.height)))
        self._see(seen)
        if self.rows:
            self._cursor = self._at(seen if by < 0 else min(seen + self.size.height, self._height) - 1)
            self.refresh()
            self.post_message(self.Moved(self))

    def action_open(self) -> None:
        """Unfold the chosen row, or say that it was asked for."""
        row = self.chosen
        if row is None:
            return
        following = row.next(self._opened.get(row.key, 0))
        if following is None:
            self.post_message(self.Opened(self, row))
            return
        self._opened[row.key] = following
        self._lay_out(self._cursor)
        self._into_sight()

    def on_click(self, event: events.Click) -> None:
        """Choose the row that is clicked on; a second time, open it."""
        y = event.y + round(self.scroll_offset.y)
        if not self.rows or y >= self._height:
            return
        index = self._at(y)
        if index == self._cursor:
            self.action_open()
        else:
            self.choose(index)

    def on_resize(self) -> None:
        """Cut the lines anew."""
        self._lay_out(0)

    def notify_style_update(self) -> None:
        """Colours may be others now."""
        super().notify_style_update()
        self._styles = {}

    def render_line(self, y: int) -> Strip:
        """One line of what can be seen."""
        width, at = self.size.width, y + round(self.scroll_offset.y)
        if not self.rows:
            text = self.empty if y == min(1, self.size.height - 1) else ""
            said = Segment(f"  {text}", self.rich_style + self._style("dim"))
            return Strip([said]).adjust_cell_length(width, self.rich_style)
        if at >= self._height:
            return Strip.blank(width, self.rich_style)
        index = self._at(at)
        line = self.shown(index)[at - self._tops[index]]
        is_chosen, is_first = index == self._cursor, at == self._tops[index]
        ground = self.rich_style + self._style("chosen") if is_chosen and is_first else self.rich_style
        mark = Segment("▌" if is_chosen and self.has_focus else " ", ground + self._style("model"))
        pieces = [Segment(text, ground + self._style(look)) for text, look in line if text]
        return Strip([mark, *pieces]).adjust_cell_length(width, ground)

    def _style(self, name: str) -> Style:
        style = self._styles.get(name)
        if style is None:
            found = self.get_component_rich_style(f"listing--{name}", partial=True)
            style = self._styles[name] = found
        return style

    def _index(self, key: str) -> int | None:
        if self._cursor < len(self.rows) and self.rows[self._cursor].key == key:
            return self._cursor
        return next((index for index, row in enumerate(self.rows) if row.key == key), None)

    def _at(self, y: int) -> int:
        """The row that a line is of."""
        return max(0, bisect_right(self._tops, y) - 1)

    def _extent(self, index: int) -> tuple[int, int]:
        top = self._tops[index]
        return top, self._tops[index + 1] if index + 1 < len(self._tops) else self._height

    def _lay_out(self, changed: int) -> None:
        """Say where each row is, from one on."""
        at_end = round(self.scroll_offset.y) + self.size.height >= self._height
        wide = max(self.scrollable_content_region.width - 1, 10)
        changed = min(changed, len(self._tops), len(self.rows)) if wide == self._wide else 0
        self._wide = wide
        if changed and changed == len(self._tops):
            changed -= 1
        top = self._tops[changed] if changed < len(self._tops) else 0
        del self._tops[changed:]
        for index in range(changed, len(self.rows)):
            self._tops.append(top)
            row = self.rows[index]
            top += 1 if row.is_short and not self._opened.get(row.key) else len(self.shown(index))
        self._height = top
        self.virtual_size = Size(self.size.width, top)
        if self._follows and at_end:
            self._see(max(0, top - self.size.height))
        self.refresh()

    def _see(self, y: int) -> None:
        self.scroll_to(y=y, animate=False, force=True, immediate=True)

    def _into_sight(self) -> None:
        top, bottom = self._extent(self._cursor) if self.rows else (0, 0)
        seen, high = round(self.scroll_offset.y), self.size.height
        if top < seen or bottom - top >= high:
            self._see(top)
        elif bottom > seen + high:
            self._see(bottom - high)

    def watch_has_focus(self, _has_focus: bool) -> None:
        """The chosen row is drawn otherwise."""
        super().watch_has_focus(_has_focus)
        self.refresh(Region(0, 0, self.size.width, self.size.height))
