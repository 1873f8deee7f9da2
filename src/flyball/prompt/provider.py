"""Who provides prompts. The protocols are core's: toolsets, which know nothing of prompts, bring some."""

from flyball.core.prompting import DescribingPrompt, PromptProvider, provides_prompt

__all__ = ["DescribingPrompt", "PromptProvider", "provides_prompt"]
