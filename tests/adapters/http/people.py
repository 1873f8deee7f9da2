"""People with tokens, and a program."""

from __future__ import annotations

from pathlib import Path

from flyball.adapters.http.tokens import Tokens


class People:
    """Tokens of persons and of a program, on one server; each is for all that there is."""

    def __init__(self, folder: Path) -> None:
        self.tokens = Tokens(folder / "tokens.json")
        self._texts = {
            name: self.tokens.add(name, roles=roles)[0]
            for name, roles in (("ann", ("user",)), ("ben", ("reviewer",)), ("root", ("admin",)), ("bot", ()))
        }

    def headers(self, name: str) -> dict[str, str]:
        """What somebody sends along."""
        return {"Authorization": f"Bearer {self._texts[name]}"}
