"""Code and schemas that are named on the command line. The current folder can be imported from."""

from __future__ import annotations

import sys
from codecs import BOM_UTF8
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import msgspec

from flyball.constraint.grammar import GrammarDefinition
from flyball.constraint.validation import validator_of
from flyball.core.errors import GrammarMalformed, GrammarNotFound, SchemaMalformed, UserError
from flyball.orchestrate.agent import Agent
from flyball.tool.protocol import Tool
from flyball.tool.toolset import Toolset


def tools_of(reference: str) -> list[Any]:
    """The tools that `module` or `module:name` names: all of a module's own, or one, a list, a toolset.

    Raises:
        UserError: there is no such module, it cannot be imported, or it has no such tools.
    """
    module, name = _module_of(reference, "--tools")
    if name:
        found = _attribute(module, name, "--tools")
        return list(cast("Any", found)) if isinstance(found, Toolset | list | tuple) else [found]
    tools: dict[int, Any] = {}
    for name, value in vars(module).items():
        if not name.startswith("_") and isinstance(value, Tool | Toolset) and not isinstance(value, type):
            tools[id(value)] = value
    if not tools:
        raise UserError(
            f"--tools {reference}: the module has no tools: mark functions with @tool, or name one as "
            f"{reference}:function"
        )
    return list(tools.values())


def agents_of(reference: str) -> list[Agent[Any, Any]]:
    """The agents that `module` or `module:name` names: all of a module's own, or one, or a list of them.

    Raises:
        UserError: there is no such module, it cannot be imported, or it has no agents.
    """
    module, name = _module_of(reference, "AGENTS")
    found: Any = list(vars(module).values())
    if name:
        found = _attribute(module, name, "AGENTS")
        found = list(cast("Any", found)) if isinstance(found, list | tuple) else [found]
        if not all(isinstance(agent, Agent) for agent in found):
            raise UserError(f"AGENTS {reference}: that is no agent, and no list of agents")
    agents: list[Agent[Any, Any]] = [one for one in found if isinstance(one, Agent)]
    agents = list(dict.fromkeys(agents))  # a module may have one under two names
    if not agents:
        raise UserError(f"AGENTS {reference}: the module has no agents: make one, as in agent = Agent(…)")
    return agents


def deps_of(reference: str | None) -> Any:
    """What `module:name` names: the dependencies of agents and tools, or a function that makes them.

    Raises:
        UserError: there is none, or the function fails.
    """
    if reference is None:
        return None
    module, name = _module_of(reference, "--deps")
    if not name:
        raise UserError(f"--deps {reference}: name the value or the function too, as in {reference}:deps")
    found = _attribute(module, name, "--deps")
    if not callable(found):
        return found
    try:
        return found()
    except Exception as error:
        raise UserError(f"--deps {reference}: it failed: {type(error).__name__}: {error}") from error


def output_of(reference: str) -> Any:
    """The type that `module:Type` names.

    Raises:
        UserError: there is none.
    """
    module, name = _module_of(reference, "--output")
    if not name:
        raise UserError(f"--output {reference}: name the type too, as in {reference}:Type")
    return _attribute(module, name, "--output")


def schema_of(file: Path) -> dict[str, Any]:
    """The JSON Schema that a file holds.

    Raises:
        UserError: it cannot be read.
        SchemaMalformed: it holds none.
    """
    try:
        document: Any = msgspec.json.decode(file.read_bytes().removeprefix(BOM_UTF8))
    except OSError as error:
        raise UserError(f"--schema {file}: it cannot be read: {error.strerror or error}") from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise SchemaMalformed(f"--schema {file}: it holds no JSON: {error}", path=str(file)) from error
    if document is True:  # which anything follows
        document = {}
    if not isinstance(document, dict):
        kind = "false, which nothing follows" if document is False else f"a {type(document).__name__}"
        raise SchemaMalformed(f"--schema {file}: a JSON Schema is an object, not {kind}", path=str(file))
    schema = cast("dict[str, Any]", document)
    try:
        validator_of(schema)
    except SchemaMalformed as error:
        raise SchemaMalformed(f"--schema {file}: {error.message}", path=str(file)) from error
    return schema


def plan_of(file: Path) -> dict[str, Any]:
    """The plan that a file holds, as JSON; the system looks at what it says.

    Raises:
        UserError: it cannot be read, or holds no JSON object.
    """
    try:
        document: Any = msgspec.json.decode(file.read_bytes().removeprefix(BOM_UTF8))
    except OSError as error:
        raise UserError(f"--plan {file}: it cannot be read: {error.strerror or error}") from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UserError(f"--plan {file}: it holds no JSON: {error}") from error
    if not isinstance(document, dict):
        raise UserError(f'--plan {file}: a plan is an object, such as {{"steps": [...]}}')
    return cast("dict[str, Any]", document)


def grammar_of(file: Path) -> str:
    """The GBNF grammar that a file holds.

    Raises:
        GrammarNotFound: the file is not there.
        UserError: it cannot be read.
        GrammarMalformed: it holds none.
    """
    try:
        return GrammarDefinition.from_file(file).grammar
    except (GrammarNotFound, GrammarMalformed, UserError) as error:
        raise type(error)(f"--grammar {error.message}", **error.details) from error


def _module_of(reference: str, option: str) -> tuple[ModuleType, str]:
    name, _, attribute = reference.partition(":")
    if name.endswith(".py"):
        raise UserError(f"{option} {reference}: name the module, not its file: {name.removesuffix('.py')}")
    if not name or not all(part.isidentifier() for part in name.split(".")):
        raise UserError(f"{option} {reference}: {name!r} is no module's name")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return import_module(name), attribute
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise UserError(
                f"{option} {reference}: there is no module {error.name!r}, neither in {here} nor installed"
            ) from error
        raise UserError(f"{option} {reference}: importing it failed: {error}") from error
    except (Exception, SystemExit) as error:
        raise UserError(
            f"{option} {reference}: importing it failed: {type(error).__name__}: {error}"
        ) from error


def _attribute(module: ModuleType, name: str, option: str) -> Any:
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            known = [one for one in vars(module) if not one.startswith("_")]
            raise UserError(
                f"{option}: {module.__name__} has no {name!r}; it has {', '.join(known[:12]) or 'nothing'}"
            ) from None
    return found
