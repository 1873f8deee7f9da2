"""llguidance as the judge of printed grammars: whether it accepts a text, what it lets a model write."""

from __future__ import annotations

import random
import re
from typing import Any

import llguidance  # pyright: ignore[reportMissingTypeStubs]
from llguidance.gbnf_to_lark import gbnf_to_lark  # pyright: ignore[reportMissingTypeStubs]

END = 256
_LONG_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:U([0-9a-f]{8})|u(0[0-9a-f]{3}))")


class _Bytes:
    """A tokenizer whose tokens are the bytes, and one that ends the text."""

    eos_token_id = END
    bos_token_id = None
    tokens = (*(bytes([value]) for value in range(256)), b"<end>")
    special_token_ids = (END,)

    def __call__(self, text: str | bytes) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())


_TOKENS = llguidance.LLTokenizer(llguidance.TokenizerWrapper(_Bytes()))  # pyright: ignore[reportArgumentType]


class Oracle:
    """A grammar as llguidance reads it."""

    def __init__(self, grammar: str) -> None:
        self._matcher = llguidance.LLMatcher(_TOKENS, grammar, log_level=0)
        assert not self._matcher.get_error(), self._matcher.get_error()[:2_000]

    @classmethod
    def of_gbnf(cls, grammar: str) -> Oracle:
        # Its reader of GBNF drops the leading zeros of \u0375 and \U0010ffff.
        return cls(
            gbnf_to_lark(
                _LONG_ESCAPE.sub(lambda found: found[1] + chr(int(found[2] or found[3], 16)), grammar)
            )
        )

    @classmethod
    def of_schema(cls, schema: dict[str, Any]) -> Oracle:
        """llguidance's own reading of a schema, in the form of text that flyball's grammars have."""
        options: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
        return cls(llguidance.LLMatcher.grammar_from_json_schema(schema, overrides=options))

    def accepts(self, text: str) -> bool:
        self._matcher.reset()
        data = list(text.encode())
        return self._matcher.try_consume_tokens(data) == len(data) and self._matcher.is_accepting()

    def walk(self, chance: random.Random, most: int = 4_000) -> str | None:
        """A text that the masks allow, byte by byte at random; None if it has no end within `most` bytes."""
        self._matcher.reset()
        written: list[int] = []
        while len(written) < most:
            allowed = [token for token, open_ in enumerate(self._matcher.compute_logit_bias()) if open_]
            if END in allowed and (len(allowed) == 1 or chance.random() < 0.3):
                return bytes(written).decode()
            plain = [token for token in allowed if token < 0x80]
            closing = [token for token in plain if chr(token) in '"]}']
            token = chance.choice(closing if closing and chance.random() < 0.5 else plain or allowed)
            assert self._matcher.consume_token(token)
            written.append(token)
        return None
