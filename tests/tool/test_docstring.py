from __future__ import annotations

import string
from textwrap import indent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.tool.docstring import Docstring, parse

GOOGLE = """Weather in a city.

    Looks it up in the almanac.

    Args:
        city (str, optional): The city,
            with its country.

            Without abbreviations.
        days: How many days: from 1 to 7.
        **rest: Whatever else.

    Returns:
        Degrees.

    Raises:
        ValueError: never.

    Only for the north.
    """

NUMPY = """Weather in a city.

    Parameters
    ----------
    city : str
        The city,
        with its country.
    days, hours : int, optional
        How long.
    bare

    Returns
    -------
    int
        Degrees.

    Raises
    ------
    ValueError
        Never.

    Notes
    -----
    Only for the north.
    """

SPHINX = """Weather in a city.

    :param city: The city,
        with its country.
    :param dict[str, int] counts: How many.
    :type city: str
    :returns: Degrees.
    :rtype: int
    :raises ValueError: never.
    :emoji: stays
    """


def test_google():
    assert parse(GOOGLE) == Docstring(
        "Weather in a city.\n\nLooks it up in the almanac.\n\nReturns:\n    Degrees.\n\nOnly for the north.",
        {
            "city": "The city, with its country.\nWithout abbreviations.",
            "days": "How many days: from 1 to 7.",
            "rest": "Whatever else.",
        },
    )


def test_numpy():
    assert parse(NUMPY) == Docstring(
        "Weather in a city.\n\nReturns\n-------\nint\n    Degrees.\n\nNotes\n-----\nOnly for the north.",
        {"city": "The city, with its country.", "days": "How long.", "hours": "How long."},
    )


def test_sphinx():
    assert parse(SPHINX) == Docstring(
        "Weather in a city.\n\nReturns: Degrees.\n:emoji: stays",
        {"city": "The city, with its country.", "counts": "How many."},
    )


def test_styles_may_be_mixed():
    text = "Do it.\n\nArgs:\n    one: First.\n\n:param two: Second."
    assert parse(text) == Docstring("Do it.", {"one": "First.", "two": "Second."})


@pytest.mark.parametrize("text", [None, "", "   \n  "])
def test_nothing_gives_nothing(text: str | None):
    assert parse(text) == Docstring()


@pytest.mark.parametrize("text", ["Args:", "Args: are words here", "Parameters of a thing\nand more", "a: b"])
def test_prose_that_only_looks_like_a_section_stays(text: str):
    assert parse(text) == Docstring(text)


names = st.text(string.ascii_lowercase + "_", min_size=1, max_size=8).filter(str.isidentifier)
words = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=8)
bodies = st.lists(words, min_size=1, max_size=6).map(" ".join)
summaries = bodies.map(lambda text: f"Does {text}.")
documented = st.dictionaries(names, bodies, max_size=4)


@given(summaries, documented)
def test_what_google_style_says_is_read_back(summary: str, parameters: dict[str, str]):
    entries = "\n".join([f"{name}: {body}" for name, body in parameters.items()])
    section = f"\n\nArgs:\n{indent(entries, '    ')}" if parameters else ""
    assert parse(summary + section) == Docstring(summary, parameters)


@given(summaries, documented)
def test_what_numpy_style_says_is_read_back(summary: str, parameters: dict[str, str]):
    entries = "\n".join([f"{name} : int\n    {body}" for name, body in parameters.items()])
    section = f"\n\nParameters\n----------\n{entries}" if parameters else ""
    assert parse(summary + section) == Docstring(summary, parameters)


@given(summaries, documented)
def test_what_sphinx_style_says_is_read_back(summary: str, parameters: dict[str, str]):
    entries = "\n".join([f":param {name}: {body}" for name, body in parameters.items()])
    assert parse(f"{summary}\n\n{entries}") == Docstring(summary, parameters)


@given(summaries, documented)
def test_indentation_of_the_source_does_not_matter(summary: str, parameters: dict[str, str]):
    entries = "\n".join([f"    {name}: {body}" for name, body in parameters.items()])
    text = f"{summary}\n\nArgs:\n{entries}" if parameters else summary
    first, _, rest = text.partition("\n")
    assert parse(f"{first}\n{indent(rest, ' ' * 8)}") == parse(text)


pieces = st.sampled_from(
    ["Args:", "Raises:", "Parameters", "------", ":param x: y", "    x: y", "x", "", "  "]
)


@given(st.lists(st.one_of(pieces, st.text(max_size=20)), max_size=12).map("\n".join))
def test_no_text_makes_it_fail_and_nothing_is_invented(text: str):
    read = parse(text)
    assert all(name and body for name, body in read.parameters.items())
    for word in read.description.split():
        # Sphinx' `:returns:` is the one thing that is said in another word.
        assert word in text.expandtabs() or word == "Returns:"
