"""The command `flyball`: one file a command, and a few that several of them share.

    ask chat resume replay fork        runs, each through the System facade
    runs show why                      what is recorded, read from the journal
    mcp_serving tui                    agents for an MCP client; the terminal UI
    models doctor                      the machine's own: model files, what is installed
    app                                the commands as one program: parsing, errors, exit codes
    shared places exits failing        options of all commands; folders; exit codes; errors as a line or JSON
    running threads                    the event loop, and signals; tools that do not end
    streams screen logs                stdout and stderr; what a terminal shows; what is logged
    answering approving                an answer as it comes; a person's yes or no
    prompting loading                  the prompt; modules, schemas and grammars
    origin standing naming             what a run was begun with, how it stands, its id
    timeline explaining rendering page a run's course, drawn; its turns, explained; what engines made; printed
    costing                            what a run cost
    middleware                         what middleware did around a model call, in words

Rules:
- stdout is for the answer (with `--json` one document and nothing else), stderr for whatever is about it;
- nothing but an error of the taxonomy reaches the user: one line with its code, and an exit code by category;
- this module loads neither cyclopts nor rich: where they are missing it still has to say so.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

_NEEDED = ("cyclopts", "rich", "platformdirs")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code (see `exits`).

    Without arguments it is the process's own command: the process then ends with it, whatever its tools do.
    """
    try:
        code = _main(sys.argv[1:] if argv is None else list(argv))
    except KeyboardInterrupt:
        # While something was being imported: nothing has begun that could be told more about.
        sys.stderr.write("flyball: CANCELLED_SIGNAL: interrupted\n")
        code = 130
    threads = sys.modules.get("flyball.adapters.cli.threads")
    if argv is None and threads is not None and threads.any_busy():
        threads.end_process(code)
    return code


def _main(argv: list[str]) -> int:
    from importlib.util import find_spec

    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        sys.stderr.write(
            f"flyball: CONFIG_MISSING_EXTRA: the command line needs {', '.join(missing)}, which is not "
            "installed: pip install 'flyball[cli]'\n"
        )
        return 3
    from flyball.adapters.cli.app import call

    return call(argv)
