"""What holds for every test: no real model is called, nobody is reached, and a run repeats exactly.

Hypothesis tries the same examples each time, so that a red test stays red until it is mended. To look
further, with new examples and many more of them: `make properties ARGS=--hypothesis-profile=explore`.
While coverage is measured there are fewer of them (`brief`): the tracer makes each take twice as long, and
the hundredth shows it no line that the tenth did not.
"""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import Phase, settings

from tests.in_memory import keep_in_memory
from tests.no_network import forbid_network
from tests.tiers import (
    pytest_collection_modifyitems,
    pytest_ignore_collect,
    pytest_runtest_protocol,
    refuse_unmarked_processes,
)

__all__ = ["pytest_collection_modifyitems", "pytest_ignore_collect", "pytest_runtest_protocol"]

# Promises that are kept in the package are told as well as our own when they are broken.
pytest.register_assert_rewrite("flyball.testing.conformance")

os.environ["FLYBALL_ALLOW_MODEL_REQUESTS"] = "0"
forbid_network()
keep_in_memory()
refuse_unmarked_processes()

# What a script starts in the background ignores Ctrl-C, and so does all that it starts: tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The phase that explains a failure traces every line of it, which takes minutes: for `explore` only.
_PHASES = tuple(phase for phase in Phase if phase is not Phase.explain)

settings.register_profile(
    "steady", derandomize=True, deadline=None, database=None, phases=_PHASES, max_examples=60
)
settings.register_profile("brief", settings.get_profile("steady"), max_examples=10)
settings.register_profile("explore", max_examples=2_000, deadline=None, print_blob=True)
settings.register_profile(
    "quick", deadline=None, database=None, phases=[Phase.explicit, Phase.generate], max_examples=300
)
settings.load_profile("steady")
