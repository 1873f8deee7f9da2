"""Holding an output to its form: JSON found in text and repaired.

Rules: pure functions over text and data; no model call, no import from another package of the band.
"""
