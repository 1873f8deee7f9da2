"""Holding an output to its form, before it is written and after.

- `grammar`: schemas and tool calls as grammars that a decoder is held to
- `json_text`: JSON found in text, and repaired
- `enums`: nearly right members of enumerations, put right
- `validation`: whether a value follows its schema
- `validators`: both of these as objects that give results: JSON, and schemas
- `protocol`: how a model that only writes text is told of tools, and how its text becomes an answer

Rules: pure functions over text and data (but that a grammar may be read from a file); no model call, no
import from another package of the band.
"""
