"""The part of Jinja2 that prompts are written in. Only who has a `JinjaTemplate` imports this, and Jinja2.

- `budget`: how much work a template may still do.
- `filters`: what may stand behind a bar.
- `sandbox`: what a template may reach: fields of mappings, places of lists, `range`.
- `reading`: a text becomes code, once what is not known here is refused, and what takes time is counted.
- `filling`: code and values become text.

Rules: whatever a template does costs steps in proportion to the time and the memory that it takes; what would
not (macros, recursion, powers, nested literals) is refused when the template is read.
"""
