"""Templates drawn as trees: what is written, and what must come of it, each worked out by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

NAMES = ("Name", "Ort_2", "größe")
"""Variables with a text."""
LISTS = ("Items", "More")
FIELDS = ("Of", "At")
"""Variables with fields; each has the names."""

literals = st.text(st.characters(exclude_characters="{}", exclude_categories=("Cs",)), max_size=8)
values = st.text(max_size=6) | st.sampled_from(["{{.Name}}", "{{", "}}", "{{end}}", "{{range .Items}}", "%s"])
"""Texts as users type them, and some that would be code if they were read."""


@dataclass(frozen=True)
class Written:
    """A piece of a template: its text, what it becomes, and the names that it needs from the top."""

    source: str
    text: str
    needs: frozenset[str] = frozenset()


environments: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        **dict.fromkeys(NAMES, values),
        **{name: st.lists(values, max_size=3) for name in LISTS},
        **{name: st.fixed_dictionaries(dict.fromkeys(NAMES, values)) for name in FIELDS},
    }
)


def together(pieces: list[Written]) -> Written:
    needs = frozenset[str]().union(*[piece.needs for piece in pieces])
    return Written(
        "".join([piece.source for piece in pieces]), "".join([piece.text for piece in pieces]), needs
    )


@st.composite
def written(draw: st.DrawFn, given: dict[str, Any], depth: int = 3) -> Written:
    """Some pieces at the top."""
    return together([draw(_piece(given, depth)) for _ in range(draw(st.integers(0, 4)))])


@st.composite
def _piece(draw: st.DrawFn, given: dict[str, Any], depth: int) -> Written:
    kinds = ["literal", "value", "field", "comment", "quoted"]
    kind = draw(st.sampled_from([*kinds, "if", "range", "with"] if depth else kinds))
    name = draw(st.sampled_from(NAMES))
    space = draw(st.sampled_from(["", " ", "\n\t"]))
    if kind == "literal":
        text = draw(literals)
        return Written(text, text)
    if kind == "value":
        top = draw(st.sampled_from(["", "$"]))
        return Written(f"{{{{{space}{top}.{name}{space}}}}}", given[name], frozenset({name}))
    if kind == "field":
        outer = draw(st.sampled_from(FIELDS))
        return Written(f"{{{{.{outer}.{name}}}}}", given[outer][name], frozenset({outer}))
    if kind == "comment":
        note = draw(st.sampled_from(["", " .Name ", "{{.Name}}", "\n"]))
        return Written(f"{{{{/*{note}*/}}}}", "")
    if kind == "quoted":
        braces = draw(st.sampled_from(["{{", "}}", "{{.Name}}", 'a"b']))
        quoted = braces.replace('"', '\\"')
        return Written(f'{{{{"{quoted}"}}}}' if draw(st.booleans()) else f"{{{{`{braces}`}}}}", braces)
    if kind == "if":
        return draw(_choice(given, depth))
    body, rest = (draw(literals) for _ in range(2))
    if kind == "range":
        listed = draw(st.sampled_from(LISTS))
        items = given[listed]
        text = "".join([f"{body}{item}{given[name]}" for item in items]) if items else rest
        source = f"{{{{range .{listed}}}}}{body}{{{{.}}}}{{{{$.{name}}}}}{{{{else}}}}{rest}{{{{end}}}}"
        return Written(source, text, frozenset({listed, name}))
    at = draw(st.sampled_from([*FIELDS, *NAMES]))
    inner = given[at][name] if at in FIELDS else given[at]
    source = f"{{{{with .{at}}}}}{body}{{{{.{name if at in FIELDS else ''}}}}}{{{{else}}}}{rest}{{{{end}}}}"
    return Written(source, f"{body}{inner}" if given[at] else rest, frozenset({at}))


@st.composite
def _choice(draw: st.DrawFn, given: dict[str, Any], depth: int) -> Written:
    names = draw(st.lists(st.sampled_from([*NAMES, *LISTS, *FIELDS]), min_size=1, max_size=3))
    bodies = [draw(written(given, depth - 1)) for _ in names]
    rest = draw(written(given, depth - 1)) if draw(st.booleans()) else None
    source = "".join(
        [
            f"{{{{{'else if' if number else 'if'} .{name}}}}}{body.source}"
            for number, (name, body) in enumerate(zip(names, bodies, strict=True))
        ]
    )
    if rest is not None:
        source += f"{{{{else}}}}{rest.source}"
    taken = next((body for name, body in zip(names, bodies, strict=True) if given[name]), rest)
    needs = together([*bodies, *([rest] if rest else [])]).needs | set(names)
    return Written(f"{source}{{{{end}}}}", "" if taken is None else taken.text, needs)
