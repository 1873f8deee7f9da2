"""Hypothesis strategies for what Gemini answers, whole and in the chunks of a stream."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.engines.google.histories import signatures, words

JSONObject = dict[str, Any]
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_counts = st.integers(0, 1000)
_args = st.dictionaries(words, st.none() | st.booleans() | st.integers(-9, 9) | words, max_size=2)


def _part() -> SearchStrategy[JSONObject]:
    text: SearchStrategy[JSONObject] = st.fixed_dictionaries({"text": _texts})
    thought: SearchStrategy[JSONObject] = st.fixed_dictionaries({"text": _texts, "thought": st.just(True)})  # noqa: FBT003
    function = st.fixed_dictionaries(
        {"name": st.just("look"), "args": _args}, optional={"id": st.sampled_from(["g1", "g2", "g3"])}
    )
    call: SearchStrategy[JSONObject] = st.fixed_dictionaries({"functionCall": function})
    image: SearchStrategy[JSONObject] = st.just({"inlineData": {"mimeType": "image/png", "data": "iVBOR//+"}})
    code: SearchStrategy[JSONObject] = st.just({"executableCode": {"language": "PYTHON", "code": "1 + 1"}})
    kinds = st.one_of(text, text, thought, call, image, code)
    return st.builds(_signed, kinds, st.none() | st.none() | signatures)


def _signed(part: JSONObject, signature: str | None) -> JSONObject:
    return part if signature is None else {**part, "thoughtSignature": signature}


@st.composite
def answers(draw: st.DrawFn) -> JSONObject:
    """A whole answer, as `generateContent` gives it."""
    usage = {
        "promptTokenCount": draw(_counts),
        "candidatesTokenCount": draw(_counts),
        "thoughtsTokenCount": draw(_counts),
        "cachedContentTokenCount": draw(_counts),
        "promptTokensDetails": [
            {"modality": "TEXT", "tokenCount": 3},
            {"modality": "IMAGE", "tokenCount": 4},
        ],
    }
    parts = draw(st.lists(_part(), max_size=5))
    candidate: JSONObject = {
        "content": {"parts": parts, "role": "model"},
        "finishReason": draw(st.sampled_from(["STOP", "MAX_TOKENS", "SAFETY"])),
        "index": 0,
    }
    if draw(st.booleans()):
        candidate["groundingMetadata"] = {"webSearchQueries": ["q"]}
    whole: JSONObject = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-9"}
    if draw(st.booleans()):
        whole["responseId"] = "resp"
    return whole


@st.composite
def cut(draw: st.DrawFn, whole: JSONObject) -> list[JSONObject]:
    """A whole answer as the chunks of a stream: words anywhere, all else in one piece."""
    candidate = whole["candidates"][0]
    pieces: list[JSONObject] = []
    for part in candidate["content"]["parts"]:
        loose = "text" in part and "thoughtSignature" not in part
        pieces += [{**part, "text": text} for text in draw(_slices(part["text"]))] if loose else [part]
    around = {key: value for key, value in whole.items() if key not in ("candidates", "usageMetadata")}
    chunks: list[JSONObject] = []
    while pieces:
        taken = draw(st.integers(1, len(pieces)))
        content = {"parts": pieces[:taken], "role": "model"}
        del pieces[:taken]
        counts = {"promptTokenCount": whole["usageMetadata"]["promptTokenCount"]}
        chunks.append({**around, "candidates": [{"content": content, "index": 0}], "usageMetadata": counts})
    last = {key: value for key, value in candidate.items() if key != "content"}
    if chunks and draw(st.booleans()):
        chunks[-1]["candidates"][0].update(last)
        chunks[-1]["usageMetadata"] = whole["usageMetadata"]
    else:
        end = {"content": {"parts": [{"text": ""}], "role": "model"}, **last}
        chunks.append({**around, "candidates": [end], "usageMetadata": whole["usageMetadata"]})
    return chunks


@st.composite
def _slices(draw: st.DrawFn, text: str) -> list[str]:
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
