"""The harness runs what it should, and fails when a page is wrong."""

from __future__ import annotations

import re
import sys
import traceback
from pathlib import Path

import pytest

from tests.docs.pages import PageError, blocks_of, run_page


def page(folder: Path, text: str) -> Path:
    """A page of documentation; `'''` stands for the fence, so that the tests can be read."""
    path = folder / "made-up.md"
    path.write_text(text.replace("'''", "```"))
    return path


def test_blocks_share_names_in_order(tmp_path: Path) -> None:
    text = """
# A page
'''python
numbers = [1, 2]
'''
and then
'''python
print(sum(numbers))
'''
gives
'''text
3
'''
"""
    assert run_page(page(tmp_path, text)) == 2


def test_a_wrong_output_fails(tmp_path: Path) -> None:
    text = """
'''python
print("one")
'''
'''text
two
'''
"""
    with pytest.raises(
        PageError, match=r"made-up.md:3: the page says that this block prints\n\ntwo\n\nbut it prints\n\none"
    ):
        run_page(page(tmp_path, text))


def test_a_missing_output_fails(tmp_path: Path) -> None:
    with pytest.raises(PageError, match="prints"):
        run_page(page(tmp_path, "'''python\nx = 1\n'''\n'''text\n1\n'''\n"))


def test_text_after_another_block_is_not_an_output(tmp_path: Path) -> None:
    text = "'''python\nprint(1)\n'''\n'''console\n$ ls\n'''\n'''text\na diagram\n'''\n"
    assert run_page(page(tmp_path, text)) == 1


def test_await_works_at_the_top_level_and_one_loop_serves_the_page(tmp_path: Path) -> None:
    text = """
'''python
import asyncio

queue = asyncio.Queue()


async def fill():
    await queue.put("filled")
'''
'''python
task = asyncio.create_task(fill())
await asyncio.sleep(0)
async with asyncio.timeout(1):
    print(await queue.get())
'''
'''text
filled
'''
'''python
await task
print(asyncio.get_running_loop() is task.get_loop())
'''
'''text
True
'''
"""
    assert run_page(page(tmp_path, text)) == 3


def test_a_block_that_does_not_await_may_start_a_loop_of_its_own(tmp_path: Path) -> None:
    text = """
'''python
import asyncio

await asyncio.sleep(0)
'''
'''python
print(asyncio.run(asyncio.sleep(0, "done")))
'''
'''text
done
'''
'''python
print(await asyncio.sleep(0, "again"))
'''
'''text
again
'''
"""
    assert run_page(page(tmp_path, text)) == 3


def test_classes_of_a_page_can_be_found_by_those_who_resolve_annotations(tmp_path: Path) -> None:
    text = """
'''python
from __future__ import annotations

from msgspec import Struct
from msgspec.json import decode


class Inner(Struct):
    n: int


class Outer(Struct):
    inner: Inner


print(decode(b'{"inner": {"n": 1}}', type=Outer))
'''
'''text
Outer(inner=Inner(n=1))
'''
"""
    before = set(sys.modules)
    run_page(page(tmp_path, text))
    assert not [name for name in set(sys.modules) - before if name.startswith("page_")]


def test_an_error_in_a_block_shows_the_line_of_the_page(tmp_path: Path) -> None:
    path = page(tmp_path, "\n\n'''python\nx = 1\nx / 0\n'''\n")
    with pytest.raises(ZeroDivisionError) as caught:
        run_page(path)
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.lineno) == ("made-up.md", 5)


def test_a_skipped_block_does_not_run(tmp_path: Path) -> None:
    text = "'''python skip needs a key\nraise SystemExit\n'''\n'''text\nnever\n'''\n"
    assert run_page(page(tmp_path, text)) == 1


def test_a_skipped_block_must_be_python(tmp_path: Path) -> None:
    with pytest.raises(PageError, match=r"made-up.md:2: this block is not Python"):
        run_page(page(tmp_path, "'''python skip needs a key\nif:\n'''\n"))


def test_nothing_runs_if_a_later_block_is_not_python(tmp_path: Path) -> None:
    with pytest.raises(PageError, match="not Python"):
        run_page(page(tmp_path, "'''python\nraise SystemExit\n'''\n'''python\nif:\n'''\n"))


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ("python skip", "a skipped block says why"),
        ("python ignore", "unknown mark 'ignore'"),
        ("py", "a block marked 'py' would not be run"),
        ("pycon", "a block marked 'pycon' would not be run"),
    ],
)
def test_a_block_marked_wrongly_is_refused(info: str, message: str) -> None:
    with pytest.raises(PageError, match=re.escape(message)):
        blocks_of(f"```{info}\nprint(1)\n```\n", "made-up.md")


def test_blocks_in_lists_and_longer_fences_are_found() -> None:
    blocks = blocks_of(
        "- a list\n\n  ```python\n  x = 1\n  ```\n\n````python\ny = '''```'''\n````\n", "made-up.md"
    )
    assert [(block.line, block.source) for block in blocks] == [(4, "x = 1\n"), (8, "y = '''```'''\n")]


def test_a_fence_inside_a_fence_is_not_a_block() -> None:
    assert blocks_of("````markdown\n```python\nx = 1\n```\n````\n", "made-up.md") == []
