"""The commands as one program: what was typed goes to its command, and whatever goes wrong becomes a line."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Sequence
from itertools import pairwise

from cyclopts import App, CycloptsError, MissingArgumentError, Parameter

from flyball.adapters.cli.exits import BROKEN_PIPE, OK, UNEXPECTED, stopped
from flyball.adapters.cli.failing import report
from flyball.adapters.cli.helping import drawn
from flyball.adapters.cli.prompting import STDIN
from flyball.adapters.cli.streams import give_up_stdout, stdout_fault, take_streams
from flyball.core.errors import FlyballError, OrchestrationFailure, UserError

_HERE = "flyball.adapters.cli"


def _version() -> str:
    from importlib.metadata import version

    return version("flyball")


app = App(
    name="flyball",
    help="Language-model agents with deterministic control: ask, and see exactly what happened.",
    version=_version,
    default_parameter=Parameter(negative=(), show_default=False, consume_multiple=False),
    help_format="plaintext",
    help_formatter=drawn,
    suppress_keyboard_interrupt=False,
)
tokens = App(
    name="tokens", help="The tokens that open `flyball serve` to others: add, list, revoke.", sort_key=9
)
identity = App(
    name="identity",
    help="Who agents are, and what they may do: create, list, show, issue, verify.",
    sort_key=9,
)
tenants = App(
    name="tenants",
    help="The tenants of a NATS cluster: init, add, list, furnish, quota, creds, revoke, remove.",
    sort_key=10,
)
models = App(name="models", help="The model files of the embedded engine: list, pull, remove.", sort_key=8)
mcp = App(name="mcp", help="MCP: serve agents to clients, list what servers offer.", sort_key=9)
_COMMANDS = {
    "ask": """Ask a model something; the run is recorded.

        The answer goes to stdout. What is piped in comes after the words; a dash stands for it.""",
    "chat": """Talk with a model; each of its answers is a recorded run.

        Ctrl-C stops an answer, Ctrl-D leaves. /help lists what else can be said.""",
    "runs": "List the runs that are recorded.",
    "show": "Draw a run's course: each step with its time and tokens.",
    "why": "Explain a run: what was sent, what came back, what decided, what may be done next.",
    "replay": "Give the answer of a finished run again, from its journal alone.",
    "resume": """Go on with a run that was interrupted; try a failed one again.

        It goes on by what was recorded. A run that has its answer gives it again.""",
    "fork": "Go on from a run's first turns, in a run of its own, perhaps with another model.",
    "serve": "Serve agents over HTTP: the API, OpenAI's protocol, events as they happen.",
    "tui": """Chat, runs and approvals on the whole terminal.

        It is a client of the HTTP API: of a server that is named, or of one that it starts for itself.""",
    "up": "Run a NATS server of this machine's own, with all workers for some agents.",
    "worker": "Carry the loops of some agents on, beside as many other workers as are wanted.",
    "signal": "Say something to a run: cancel, pause, resume, approve, reject, feedback, retry or detach.",
    "answer": "Give a run the result of a tool call that waits for it from outside.",
    "follow": "Watch a run, live: its steps, and the words as they come.",
    "trajectory": "Draw the steps of a run; with --json, its trajectory as SemStreams has it.",
    "dead": "List what no worker could do anything with, and why; give it to them again, or drop it.",
    "doctor": "Look whether everything that flyball needs is there.",
}
_MODELS = {
    "list": "List the models of the catalogue, and those that are on this disk.",
    "pull": "Fetch a model's file.",
    "remove": "Remove a model's file from this disk.",
}
_TOKENS = {
    "add": "Make a token. It is shown once.",
    "list": "List the tokens, without their secrets.",
    "revoke": "Take a token away.",
}
_IDENTITY = {
    "create_identity": ("create", "Make an identity, with a key of its own."),
    "list_identities": ("list", "List the identities that are kept here."),
    "show_identity": ("show", "Show an identity, and whether its credentials hold."),
    "issue_credential": ("issue", "Give an identity more capabilities."),
    "verify_file": ("verify", "Look whether a credential holds, or all that an identity claims."),
    "revoke_credential": ("revoke", "Take a credential back."),
    "delete_identity": ("delete", "Forget an identity and its key."),
}
"""The commands about identities, by their functions."""
_TENANTS = {
    "init_tenants": ("init", "Make an operator, and what the servers of a cluster include."),
    "add_tenant": ("add", "Make a tenant: its account, all that is kept in it, credentials for each role."),
    "list_tenants": ("list", "List the tenants, and how much of its quota each uses."),
    "furnish_tenant": ("furnish", "Bring a tenant to what this release needs, and make what is missing."),
    "change_quota": ("quota", "Change how much a tenant may have, from now on."),
    "make_creds": ("creds", "Make new credentials for a role."),
    "revoke_creds": ("revoke", "Let in no more who has credentials of a role."),
    "remove_tenant": ("remove", "Remove a tenant, with all that it has."),
}
"""The commands about tenants, by where they are."""
_MCP = {
    "mcp_serving:serve_mcp": ("serve", "Serve agents to an MCP client over stdin and stdout."),
    "mcp:list_tools": (
        "tools",
        "List the tools that MCP servers offer, under the names that a model would call them by.",
    ),
}
"""The commands about MCP, by where they are."""
_TOGETHER = {"up": "worker", "signal": "signalling", "trajectory": "follow"}
"""Commands that are not in a module of their own name."""
# Named, not imported: each command is loaded when it is called.
for number, (name, about) in enumerate(_COMMANDS.items()):
    app.command(f"{_HERE}.{_TOGETHER.get(name, name)}:{name}", name=name, help=about, sort_key=number)
for name, about in _MODELS.items():
    models.command(f"{_HERE}.models:{name}_models", name=name, help=about)
app.command(models)
for name, about in _TOKENS.items():
    tokens.command(f"{_HERE}.tokens:{name}_token{'s' if name == 'list' else ''}", name=name, help=about)
app.command(tokens)
for function, (name, about) in _IDENTITY.items():
    identity.command(f"{_HERE}.identity:{function}", name=name, help=about)
app.command(identity)
for number, (place, (name, about)) in enumerate(_TENANTS.items()):
    tenants.command(f"{_HERE}.tenants:{place}", name=name, help=about, sort_key=number)
app.command(tenants)
for place, (name, about) in _MCP.items():
    mcp.command(f"{_HERE}.{place}", name=name, help=about)
app.command(mcp)


def call(argv: Sequence[str]) -> int:
    """Run a command; returns the exit code. Nothing but an end of the process by a signal leaves this."""
    take_streams()
    options = argv[: argv.index("--")] if "--" in argv else argv
    try:
        code = _called(argv, as_json="--json" in options, debug="--debug" in options)
        sys.stdout.flush()
    except BrokenPipeError:
        give_up_stdout()
        return BROKEN_PIPE
    except OSError as error:
        give_up_stdout()
        wrong = OrchestrationFailure(f"stdout cannot be written: {error.strerror or error}")
        return report(wrong, as_json=False)
    return code


def _with_stdin(argv: Sequence[str]) -> list[str]:
    """The words with `-` marked as what stands for stdin.

    Raises:
        UserError: it is the value of an option; only a prompt comes from there.
    """
    _, apps, _ = app.parse_commands(list(argv))
    options = {
        name
        for argument in apps[-1].assemble_argument_collection()
        if argument.hint is not bool
        for name in argument.names
        if name.startswith("-")
    }
    for before, token in pairwise(argv[: argv.index("--")] if "--" in argv else argv):
        if token == "-" and before in options:
            raise UserError(f"{before} -: only a prompt is read from stdin; a file may be /dev/stdin")
    return [STDIN if token == "-" else token for token in argv]


def _wrongly_written(error: CycloptsError) -> UserError:
    """What is wrong with the command as it was typed, and which help says more."""
    command = " ".join(["flyball", *(error.command_chain or ())])
    wrong = str(error)
    if isinstance(error, MissingArgumentError) and error.keyword is not None:
        wrong = f"{error.keyword} needs a value"
    elif isinstance(error, MissingArgumentError) and error.argument is not None:
        about = (error.argument.parameter.help or "").rstrip(".")
        wrong = f"{error.argument.name} is missing" + (f": {about[:1].lower()}{about[1:]}" if about else "")
    return UserError(f"{wrong} (see: {command} --help)")


def _called(argv: Sequence[str], *, as_json: bool, debug: bool) -> int:
    try:
        tokens = _with_stdin(argv) if "-" in argv else argv
        return app(tokens, exit_on_error=False, print_error=False, result_action="return_value") or OK
    except CycloptsError as error:
        failure: FlyballError = _wrongly_written(error)
    except KeyboardInterrupt:
        failure = stopped(signal.SIGINT)
    except FlyballError as error:
        failure = error
    except BrokenPipeError:
        raise
    except Exception as error:
        if error is stdout_fault():
            raise
        if debug:
            traceback.print_exc()
        wrong = f"flyball failed unexpectedly: {type(error).__name__}: {error}"
        report(OrchestrationFailure(f"{wrong} (--debug shows where)"), as_json=as_json)
        return UNEXPECTED
    if debug:
        traceback.print_exception(failure)
    return report(failure, as_json=as_json)
