"""Documents cut into chunks: text, Markdown, code, and folders of them.

- `size`: how large a chunk may be, and how much of the one before it repeats; in tokens.
- `fitting`: the longest beginning of a text that fits.
- `packing`: places where a text may be cut become pieces that fit.
- `text`, `markdown`, `code`: where texts of a kind are cut, and what their chunks are called.
- `folder`, `patterns`: the files of a folder.

Rules, of every chunker: a chunk's content is `text[start:end]` of its metadata; nothing but white space is
left out between two chunks; they stand in the text's order; none is larger than its size allows, unless it is
a single character; the same text is always cut in the same way.
"""

from flyball.context.chunking.code import chunk_code
from flyball.context.chunking.folder import Loaded, Skipped, load_folder
from flyball.context.chunking.markdown import chunk_markdown
from flyball.context.chunking.size import ChunkSize
from flyball.context.chunking.text import chunk_text

__all__ = [
    "ChunkSize",
    "Loaded",
    "Skipped",
    "chunk_code",
    "chunk_markdown",
    "chunk_text",
    "load_folder",
]
