"""OpenAI's Chat Completions, which most other servers speak too: `encode` there, `decode` back."""
