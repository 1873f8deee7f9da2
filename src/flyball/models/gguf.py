"""The header of a GGUF file: what a model says about itself, and how long its file must be.

Layout: the magic, a version, two counts; that many key-value pairs; that many tensor descriptions; then,
aligned, the tensors. Only the header is read, and every length in it is checked against the file's end before
it is believed: a file that lies is refused, and costs no more than its own size.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from flyball.core.errors import ModelFileInvalid

_Read = TypeVar("_Read")

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_DEEPEST = 4
"""How far arrays may be nested: models nest none."""

_STRING, _ARRAY = 8, 9
_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}

_WORDS = {4: "I", 5: "i"}

_TENSOR_TYPES = {
    0: (1, 4),  # F32
    1: (1, 2),  # F16
    2: (32, 18),  # Q4_0
    3: (32, 20),  # Q4_1
    6: (32, 22),  # Q5_0
    7: (32, 24),  # Q5_1
    8: (32, 34),  # Q8_0
    9: (32, 36),  # Q8_1
    10: (256, 84),  # Q2_K
    11: (256, 110),  # Q3_K
    12: (256, 144),  # Q4_K
    13: (256, 176),  # Q5_K
    14: (256, 210),  # Q6_K
    15: (256, 292),  # Q8_K
    16: (256, 66),  # IQ2_XXS
    17: (256, 74),  # IQ2_XS
    18: (256, 98),  # IQ3_XXS
    19: (256, 50),  # IQ1_S
    20: (32, 18),  # IQ4_NL
    21: (256, 110),  # IQ3_S
    22: (256, 82),  # IQ2_S
    23: (256, 136),  # IQ4_XS
    24: (1, 1),  # I8
    25: (1, 2),  # I16
    26: (1, 4),  # I32
    27: (1, 8),  # I64
    28: (1, 8),  # F64
    29: (256, 56),  # IQ1_M
    30: (1, 2),  # BF16
    34: (256, 54),  # TQ1_0
    35: (256, 66),  # TQ2_0
    39: (32, 17),  # MXFP4
}
"""Elements and bytes of a block, by tensor type. A newer type counts as one byte."""


_UNKNOWN, _CONTROL = 2, 3
"""The types of tokens that are written as nothing, whatever they are called."""

_ENDS = frozenset({
    "</s>", "<eos>", "[EOS]", "<EOT>", "_<EOT>", "[EOT]", "<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>",
    "<|return|>", "<|call|>", "<|calls|>", "<|flush|>", "<|endoftext|>", "<|end_of_text|>", "<end_of_turn>",
    "<end_of_utterance>", "< EOT >", "<|end_of_sentence|>", "<\uff5cend\u2581of\u2581sentence\uff5c>",
})  # fmt: skip
"""What llama.cpp knows by name for the end of an answer."""


class Header(Struct, frozen=True):
    """What a model's file says about itself; empty and 0 where it says nothing."""

    version: int
    tensors: int
    architecture: str
    name: str
    context_length: int
    embedding_length: int
    chat_template: bool
    needed: int
    """How many bytes its tensors end at: the file has at least as many."""


def read_header(path: Path, called: str | None = None) -> Header:
    """The header of a model's file, which is as long as it says.

    Args:
        path: the file.
        called: what an error calls it; its path where nothing is given.

    Raises:
        ModelFileInvalid: it is no GGUF file, it is cut short, or it cannot be read; details `path`.
    """
    return _opened(path, called or str(path), _header)


def _opened(path: Path, name: str, read: Callable[[_Reader, str], _Read]) -> _Read:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
            if magic != _MAGIC:
                raise _invalid(name, f"it is no GGUF file (it begins with {magic!r})")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return read(_Reader(data), name)
    except _ShortError as short:
        raise _invalid(
            name,
            f"it is cut short: {short.needed:,} bytes are needed and {short.length:,} are there; "
            "fetch it again",
        ) from None
    except OSError as error:
        raise _invalid(name, f"it cannot be read ({error.strerror})") from error


def silent_tokens(path: Path) -> tuple[int, ...]:
    """The tokens that are written as nothing and end nothing: marks of a chat template, mostly.

    A grammar of llama.cpp takes each for the characters of its name: `<s>` passes for three letters of a
    string, and nothing is written. Who holds a model to a grammar forbids them.

    Raises:
        ModelFileInvalid: as `read_header` does.
    """
    return _opened(path, str(path), _silent)


class _ShortError(Exception):
    """The file ends before what its header speaks of."""

    def __init__(self, needed: int, length: int) -> None:
        super().__init__(needed, length)
        self.needed = needed
        self.length = length


class _OddError(Exception):
    """The header has something that no version of the format has."""


class _Array(Struct, frozen=True):
    """Where an array begins."""

    start: int


class _Reader:
    """Walks over the bytes of a header."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self.length = len(data)
        self.at = 4

    def scalar(self, form: str) -> Any:
        start = self.skip(struct.calcsize(form))
        return struct.unpack_from(form, self._data, start)[0]

    def string(self) -> str:
        size = self.scalar("<Q")
        start = self.skip(size)
        return self._data[start : start + size].decode("utf-8", "replace")

    def skip(self, size: int) -> int:
        start = self.at
        if start + size > self.length:
            raise _ShortError(start + size, self.length)
        self.at = start + size
        return start

    def value(self, kind: int) -> Any:
        """A value; of an array only where it is."""
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            start = self.at
            self._skip_array(_DEEPEST)
            return _Array(start)
        form = _SCALARS.get(kind)
        if form is None:
            raise _OddError(f"a value of the unknown type {kind}")
        return self.scalar(form)

    def numbers(self, array: _Array | None) -> tuple[int, ...]:
        """The members of an array of whole numbers of 32 bits; nothing where it is another."""
        if array is None:
            return ()
        self.at = array.start
        kind, count = self.scalar("<I"), self.scalar("<Q")
        if kind not in _WORDS:
            return ()
        return struct.unpack_from(f"<{count}{_WORDS[kind]}", self._data, self.skip(4 * count))

    def strings(self, array: _Array | None, wanted: Sequence[int]) -> list[str]:
        """The members of an array of strings at these places, which ascend."""
        found: list[str] = []
        if array is None:
            return found
        self.at, passed = array.start, 0
        kind, count = self.scalar("<I"), self.scalar("<Q")
        for place in wanted:
            if kind != _STRING or place >= count:
                break
            self._skip_strings(place - passed)
            found.append(self.string())
            passed = place + 1
        return found

    def _skip_array(self, depth: int) -> None:
        kind, count = self.scalar("<I"), self.scalar("<Q")
        if kind in _SCALARS:
            self.skip(count * struct.calcsize(_SCALARS[kind]))
        elif kind == _STRING:
            self._skip_strings(count)
        elif kind == _ARRAY and depth:
            for _ in range(count):
                self._skip_array(depth - 1)
        else:
            raise _OddError(f"an array of the type {kind}")

    def _skip_strings(self, count: int) -> None:
        # A vocabulary has a hundred thousand of them: this is where reading a header spends its time.
        data, at, length = self._data, self.at, self.length
        read = struct.Struct("<Q").unpack_from
        for _ in range(count):
            if at + 8 > length:
                raise _ShortError(at + 8, length)
            at += 8 + read(data, at)[0]
        self.at = at
        self.skip(0)


def _facts(reader: _Reader, name: str) -> tuple[int, int, dict[str, Any]]:
    """The version, how many tensors there are, and what is said before them."""
    version = reader.scalar("<I")
    if version not in _VERSIONS:
        raise _invalid(name, f"its GGUF version is {version}, and {_VERSIONS} can be read")
    tensors, pairs = reader.scalar("<Q"), reader.scalar("<Q")
    facts: dict[str, Any] = {}
    try:
        for _ in range(pairs):
            key = reader.string()
            facts[key] = reader.value(reader.scalar("<I"))
    except _OddError as odd:
        raise _invalid(name, f"its header has {odd}") from None
    return version, tensors, facts


def _silent(reader: _Reader, name: str) -> tuple[int, ...]:
    facts = _facts(reader, name)[2]
    kinds = reader.numbers(_array(facts.get("tokenizer.ggml.token_type")))
    silent = [token for token, kind in enumerate(kinds) if kind in {_UNKNOWN, _CONTROL}]
    names = reader.strings(_array(facts.get("tokenizer.ggml.tokens")), silent)
    ends = {facts.get(f"tokenizer.ggml.{end}_token_id") for end in ("eos", "eot", "eom")}
    return tuple(
        token
        for token, called in zip(silent, names, strict=False)
        if token not in ends and called not in _ENDS
    )


def _header(reader: _Reader, name: str) -> Header:
    version, tensors, facts = _facts(reader, name)
    try:
        ends = [_tensor_end(reader) for _ in range(tensors)]
    except _OddError as odd:
        raise _invalid(name, f"its header has {odd}") from None
    alignment = max(_number(facts.get("general.alignment")), 1) if "general.alignment" in facts else 32
    begin = -(-reader.at // alignment) * alignment
    needed = begin + max(ends) if ends else reader.at
    if needed > reader.length:
        raise _ShortError(needed, reader.length)
    architecture = _text(facts.get("general.architecture"))
    return Header(
        version=version,
        tensors=tensors,
        architecture=architecture,
        name=_text(facts.get("general.name")),
        context_length=_number(facts.get(f"{architecture}.context_length")),
        embedding_length=_number(facts.get(f"{architecture}.embedding_length")),
        chat_template="tokenizer.chat_template" in facts,
        needed=needed,
    )


def _tensor_end(reader: _Reader) -> int:
    reader.string()
    elements = 1
    dimensions = reader.scalar("<I")
    if dimensions > 8:
        raise _OddError(f"a tensor of {dimensions} dimensions")
    for _ in range(dimensions):
        elements *= reader.scalar("<Q")
    block, size = _TENSOR_TYPES.get(reader.scalar("<I"), (elements or 1, 1))
    return reader.scalar("<Q") + elements // block * size


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _array(value: Any) -> _Array | None:
    return value if isinstance(value, _Array) else None


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _invalid(name: str, wrong: str) -> ModelFileInvalid:
    return ModelFileInvalid(f"{name} cannot be used as a model: {wrong}", path=name)
