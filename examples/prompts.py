"""Instructions with places for values: from the run's dependencies, from a function, filled in beforehand.

It prints:

    needs: Shop, Customer, Orders
    told: You serve at The Leaf, and speak with Ann {{.Discount}}. Orders: tea (4), cake (3).
    told: Be kind: this is the first order.
    refused: template 'clerk' needs Orders, and there is only Shop, Customer
    refused: template 'letter', line 1, column 6: {{upper .Name}}: functions and pipelines are not known

Values are put in as text and never read as a template. What a template became is in the journal: a resumed
run fills nothing again. See `docs/prompts.md`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flyball import Agent, RunContext, Template
from flyball.core.errors import TemplateMalformed, TemplateVariableMissing
from flyball.testing import ScriptedEngine

CLERK = Template(
    """You serve at {{.Shop}}, and speak with {{.Customer}}.
{{- with .Orders}} Orders: {{range .}}{{.Item}} ({{.Price}}){{.Comma}}{{end}}.{{end}}""",
    name="clerk",
)


@dataclass
class Customer:
    """Dependencies that have values for templates."""

    name: str
    orders: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    def template_vars(self) -> Mapping[str, Any]:
        """What templates may know: not all that there is."""
        last = len(self.orders) - 1
        orders = [
            {"Item": item, "Price": price, "Comma": ", " if number < last else ""}
            for number, (item, price) in enumerate(self.orders)
        ]
        return {"Customer": self.name, "Orders": orders}


agent = Agent(
    ScriptedEngine("With pleasure."),
    deps_type=Customer,
    instructions=CLERK.partial(Shop="The Leaf"),
)


@agent.instructions
def tone(ctx: RunContext[Customer]) -> str | Template:
    """A function may give a template, or text, which is none."""
    return Template("Be kind: this is the {{.Number}} order.").partial(Number="first")


async def main() -> None:
    print("needs:", ", ".join(CLERK.variables))
    ann = Customer("Ann {{.Discount}}", [("tea", 4), ("cake", 3)])
    result = await agent.run("The same again, please.", deps=ann)
    for event in await result.events():
        for told in getattr(event, "instructions", ()):
            print("told:", told)
    try:
        CLERK.format(Shop="The Leaf", Customer="Ann")
    except TemplateVariableMissing as error:
        print("refused:", error.message.partition(":")[0])
    try:
        Template("Dear {{upper .Name}},", "letter")
    except TemplateMalformed as error:
        print("refused:", ":".join(error.message.split(":")[:3]))


if __name__ == "__main__":
    asyncio.run(main())
