"""A conversation that remembers: what was said, what was decided, and what a turn worked with.

It prints:

    told: You guide through Oslo. Speak English.
    kept: Where is the harbour? | South of the town hall. | And the park? | Behind the castle.
    recalled: Where is the harbour?
    kept: Where is the harbour? | South of the town hall. | Is it far? | Ten minutes.
    full: the conversation has 4 of 4 messages, and none may be left out: begin another
    later: 4 messages, English

See `docs/memory.md` and `docs/prompts.md`.
"""

from __future__ import annotations

import asyncio

from flyball import (
    Agent,
    Conversation,
    ConversationBuffer,
    InstructionSet,
    JinjaTemplate,
    MemoryPolicy,
    SystemPrompt,
    user,
)
from flyball.core.errors import MemoryFull
from flyball.testing import ScriptedEngine

agent = Agent(
    ScriptedEngine("South of the town hall.", "Behind the castle.", "Ten minutes."),
    instructions=[
        JinjaTemplate(
            "You guide through {{ town }}. {% if language %}Speak {{ language }}.{% endif %}"
        ).partial(town="Oslo", language="English"),
        SystemPrompt(instructions=(InstructionSet("Tone", ("Be brief.", "Be kind.")),)),
    ],
)


def shown(buffer: ConversationBuffer) -> str:
    """What is kept, without what the model is told first."""
    return " | ".join([message.text for message in buffer.messages() if message.role != "system"])


async def main() -> None:
    talk = Conversation(MemoryPolicy(max_messages=4, eviction_strategy="lru"))
    talk.session.set("language", "English")
    for question in ("Where is the harbour?", "And the park?"):
        result = await agent.run(question, messages=talk.messages())
        talk.end_turn(result.messages)
    print("told:", talk.messages()[0].text.partition("##")[0])
    print("kept:", shown(talk.buffer))
    print("recalled:", talk.buffer.recall("harbour")[0].text)
    talk.end_turn((await agent.run("Is it far?", messages=talk.messages())).messages)
    print("kept:", shown(talk.buffer))

    full = ConversationBuffer(policy=MemoryPolicy(max_messages=4, eviction_strategy="none"))
    full.load(talk.messages())
    try:
        full.append(user("One more thing."))
    except MemoryFull as error:
        print("full:", error.message.rpartition(",")[0])

    later = Conversation()
    later.restore(talk.snapshot())
    print(f"later: {len(later.buffer)} messages, {later.session.get('language')}")


if __name__ == "__main__":
    asyncio.run(main())
