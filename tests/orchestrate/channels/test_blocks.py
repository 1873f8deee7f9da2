"""Answers as blocks: nothing that was said is lost, and nothing takes long."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from flyball.core.forms.semstreams import ResponseBlock
from flyball.core.messages import Image, Message, Role, Text
from flyball.orchestrate.channels import blocks_of

lines = st.lists(
    st.sampled_from(
        ["words", "", "```", "```python", "~~~", "````", "```diff", "+ more", "  indented", "`x`"]
    ),
    max_size=20,
)


def told(text: str) -> list[tuple[str, str, str]]:
    return [(block.type, block.content, block.lang) for block in blocks_of(text)]


def test_prose_has_no_blocks() -> None:
    assert blocks_of("It is warm.\n\nPack light.") == ()


def test_code_and_diffs_stand_by_themselves() -> None:
    text = "Change it:\n```diff\n- a\n+ b\n```\nand run\n~~~sh\nmake\n```\n~~~\ndone"
    assert told(text) == [
        ("text", "Change it:", ""),
        ("diff", "- a\n+ b", "diff"),
        ("text", "and run", ""),
        ("code", "make\n```", "sh"),
        ("text", "done", ""),
    ]


def test_a_fence_that_is_never_closed_takes_the_rest() -> None:
    assert told("```\na\nb") == [("code", "a\nb", "")]


def test_files_come_last() -> None:
    message = Message(Role.ASSISTANT, (Text("see"), Image("data:image/png;base64,AA==")))
    assert blocks_of("see", message)[-1] == ResponseBlock(type="file", content="data:image/png;base64,AA==")


@given(lines)
def test_every_line_is_in_one_block_or_is_a_fence(said: list[str]) -> None:
    blocks = blocks_of("\n".join(said))
    for block in blocks:
        block.validate()
    if blocks:
        told = "\n".join([block.content for block in blocks])
        for line in said:
            assert line in told or line.strip().startswith(("```", "~~~"))


def test_hostile_text_takes_no_longer() -> None:
    began = time.process_time()
    blocks_of("```\n" * 100_000)
    blocks_of("`" * 2_000_000)
    assert time.process_time() - began < 3
