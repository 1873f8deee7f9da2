"""ToolMethod: a method that `@tool` has marked. `stateful` makes tools of a class's marked methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flyball.tool.blueprint import Blueprint, blueprint_of
from flyball.tool.options import ToolOptions


class ToolMethod:
    """A method of a class, with what its signature and its options say about the tool that it is to be.

    Through an object it is the method that it was.
    """

    __slots__ = ("__wrapped__", "blueprint")

    def __init__(self, fn: Callable[..., Any], options: ToolOptions) -> None:
        # Read now: annotations may name what only the place where the class stands knows.
        self.blueprint: Blueprint = blueprint_of(fn, options, method=True)
        self.__wrapped__ = fn

    def __get__(self, instance: object, owner: type[Any] | None = None) -> Any:
        return self if instance is None else self.__wrapped__.__get__(instance, owner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, with the object first."""
        return self.__wrapped__(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<ToolMethod {self.blueprint.spec.definition.name}>"
