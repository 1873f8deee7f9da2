"""Engines for real models, one folder a vendor.

Rules:
- nothing imports an engine: it is found by its provider's name through the entry points `flyball.engines`;
- what only translates (requests to the vendor's form, answers back) stands apart from what moves bytes;
- an engine asks `check_model_requests_allowed` before each call, so that no test calls a model by accident.
"""
