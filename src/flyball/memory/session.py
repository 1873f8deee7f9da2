"""SessionState: what a session has decided, by name, across its turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any

from flyball.core.apart import apart
from flyball.core.encodable import NotEncodable, to_json
from flyball.core.errors import UserError


class SessionState:
    """Values by name, from several threads if need be. All of them can be written as JSON.

    What goes in and what comes out are copies: nobody changes a value but by `set`, `update` and `change`,
    and each of these happens whole.

    Args:
        values: what it begins with.

    Raises:
        UserError: a key is no text, or a value has no JSON form.
    """

    __slots__ = ("_lock", "_values")

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._lock = RLock()
        self._values: dict[str, Any] = _plain(values or {})

    def set(self, key: str, value: Any) -> None:
        """Put a value under a name.

        Raises:
            UserError: the name is no text, or the value has no JSON form.
        """
        self.update({key: value})

    def update(self, values: Mapping[str, Any]) -> None:
        """Put several values under their names, all at once.

        Raises:
            UserError: a name is no text, or a value has no JSON form; then none of them is put.
        """
        plain = _plain(values)
        with self._lock:
            self._values.update(plain)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a name, or the default where there is none."""
        with self._lock:
            return apart(self._values[key]) if key in self._values else default

    def change(self, key: str, change: Callable[[Any], Any], default: Any = None) -> Any:
        """Put what a function makes of a value in its place, with nobody in between; gives the new value.

        Raises:
            UserError: what it made has no JSON form; then nothing is changed.
        """
        with self._lock:
            self.set(key, change(self.get(key, default)))
            return self.get(key)

    def delete(self, key: str) -> bool:
        """Forget a name; whether it was known."""
        with self._lock:
            return self._values.pop(key, _MISSING) is not _MISSING

    def items(self) -> list[tuple[str, Any]]:
        """All names with their values, in the order in which they were first put."""
        with self._lock:
            return list(apart(self._values).items())

    def snapshot(self) -> dict[str, Any]:
        """All of it as it is now, as JSON."""
        return dict(self.items())

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Have what a snapshot has, and nothing else.

        Raises:
            UserError: it is none; then nothing is changed.
        """
        plain = _plain(snapshot)
        with self._lock:
            self._values = plain

    def clear(self) -> None:
        """Forget everything."""
        self.restore({})

    def __contains__(self, key: object) -> bool:
        with self._lock:
            return key in self._values

    def __len__(self) -> int:
        with self._lock:
            return len(self._values)

    def __repr__(self) -> str:
        return f"<SessionState {', '.join([key for key, _ in self.items()]) or 'empty'}>"


_MISSING: Any = object()


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(values, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's
        raise UserError(f"a session's state are values by name, not {values!r:.100}")
    for key in values:
        if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"the names of a session's state are texts, not {key!r:.100}")
    try:
        return dict(to_json(dict(values), "session"))
    except NotEncodable as error:
        raise UserError(f"a session's state must have a JSON form: {error}") from error
