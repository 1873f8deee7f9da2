"""The smallest value that fits a JSON Schema, made without a model: `value.smallest_value`.

Rules:
- the same schema gives the same value, always;
- a value is given only where it fits; where that cannot be known the schema is refused, with the place.
"""
