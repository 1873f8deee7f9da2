"""What production needs around a model: retries, a fallback, a limit, a cache, a router.

It prints:

    quick: It is open. (1 try failed before: overloaded)
    quick: It is open. (from the cache, 0 tokens)
    deep: Here is the proof.
    deep: Closed today. (quick failed)

The models are scripted; with real ones only the names change: `limited("openai:gpt-5-mini", ...)`. See
`docs/wrappers.md`.
"""

from __future__ import annotations

import asyncio
import logging

from flyball import (
    Agent,
    Message,
    Request,
    RetryPolicy,
    by_classifier,
    cached,
    fallback,
    limited,
    retrying,
)
from flyball.core.errors import EngineError, ModelUnavailable
from flyball.testing import ScriptedEngine

POLICY = RetryPolicy(max_retries=2, backoff=0.01, factor=2, jitter=0.25)

quick_model = ScriptedEngine(
    EngineError("overloaded"), "It is open.", ModelUnavailable("it is being loaded"), name="quick"
)
deep_model = ScriptedEngine("Here is the proof.", "Closed today.", name="deep")

# From the outside in: each try counts within the limit.
quick = retrying(limited(quick_model, requests_per_minute=600, tokens_per_minute=100_000), POLICY)
deep = retrying(limited(deep_model, max_concurrent=2), POLICY)


def kind(request: Request) -> str:
    """Which route a request takes: a function here, or a small model (`ModelClassifier`)."""
    return "hard" if "prove" in request.messages[-1].text.lower() else "easy"


model = cached(by_classifier({"easy": fallback(quick, deep), "hard": deep}, kind), ttl=3600)
agent = Agent(model, instructions="Be brief.")


def how(answer: Message, tokens: int) -> str:
    """How an answer came about."""
    extra = answer.extra or {}
    failed = extra.get("attempts", [])
    if "cached" in extra:
        return f" (from the cache, {tokens} tokens)"
    if failed and failed[0]["model"] != answer.model:
        return f" ({failed[0]['model']} failed)"
    return f" ({len(failed)} try failed before: {failed[0]['message']})" if failed else ""


async def main() -> None:
    logging.getLogger("flyball.models").setLevel(logging.ERROR)  # the tries that failed are printed here
    for question in ("Is the shop open?", "Is the shop open?", "Prove it.", "And tomorrow?"):
        result = await agent.run(question)
        answer = result.messages[-1]
        print(f"{answer.model}: {result.output}{how(answer, result.usage.total_tokens)}")


if __name__ == "__main__":
    asyncio.run(main())
