"""What a model is told first: prompts with places for values, sets of instructions, and who provides them.

- `provider`: `PromptProvider`, the one method behind which a system message is built.
- `system_prompt`, `instruction_set`, `policy`: one that is made of a base, rules under headings, and what is
  told of an agent's tools and outputs, within a limit.
- `text_template`: what all templates have in common; they stand wherever instructions may.
- `template`: `Template`, in the manner of Go's text/template: `{{.Name}}`. `tree` is what one is once it is
  read; `scanning` and `reading` read it, `filling` fills it.
- `jinja_template`, `jinja`: `JinjaTemplate`, in a part of Jinja2's language, in its sandbox, within limits.
- `variables`: where a run's values come from: its dependencies.

Rules: a package of the band imports core and inference and none of its neighbours. A template is read once,
when it is made. Values are put in as they are and never read as a template; fields are looked up in mappings
alone, so that no template reaches into an object. What is not known is refused, never passed over.
"""
