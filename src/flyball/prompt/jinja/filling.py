"""Code and values become text, within the limits of a template."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from jinja2.exceptions import SecurityError, TemplateRuntimeError, UndefinedError

from flyball.core.errors import TemplateError, TemplateVariableMissing
from flyball.prompt.jinja.budget import KEY, Budget
from flyball.prompt.jinja.reading import Compiled
from flyball.prompt.scanning import Place


def filled(place: Place, compiled: Compiled, given: Mapping[str, Any], most: int, steps: int) -> str:
    """The text of a template with these values.

    Raises:
        TemplateError: a value cannot be what the template has it as, or the template goes beyond its limits.
        TemplateVariableMissing: a value lacks a field that the template wants.
    """
    pieces: list[str] = []
    size = 0
    try:
        for piece in compiled.code.generate({**given, KEY: Budget(steps)}):
            size += len(piece)
            if size > most:
                raise TemplateError(
                    f"it comes to more than {most:,} characters: raise max_output", allowed=most
                )
            pieces.append(piece)
    except TemplateError as error:
        raise _told(place, error, type(error), error.message) from error
    except UndefinedError as error:
        raise _told(place, error, TemplateVariableMissing, error.message or "something is missing") from error
    except (SecurityError, TemplateRuntimeError) as error:
        raise _told(place, error, TemplateError, error.message or "it may not be done") from error
    except (ArithmeticError, TypeError, ValueError, LookupError, RecursionError, MemoryError) as error:
        raise _told(place, error, TemplateError, f"{type(error).__name__}: {error}") from error
    return "".join(pieces)


def _told(place: Place, error: Exception, kind: type[TemplateError], what: str) -> TemplateError:
    line = _line(error.__traceback__)
    where = f"{place.title}, line {line}" if line else place.title
    details = error.details if isinstance(error, TemplateError) else {}
    told: dict[str, Any] = {"template": place.name, "line": line}
    if kind is TemplateVariableMissing:
        told |= {"missing": [], "known": []}
    return kind(f"{where}: {what}", **(told | details))


def _line(trace: TracebackType | None) -> int:
    """The line of the template in which it went wrong, which Jinja writes into the traceback; 0 if not."""
    line = 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
