"""OpenAI's Responses API: `encode` there, `decode` back.

Nothing is stored there (`store` is false): the history is ours, and goes along with every call. A reasoning
model's thoughts come encrypted and go back unchanged, in their places.
"""
