"""A real llama.cpp server in a process of its own: `python llama_server.py MODEL KEY` prints its address."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def main() -> None:
    xllamacpp: Any = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.n_ctx, params.n_parallel, params.verbosity, params.warmup = 2048, 2, 0, False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.use_jinja, params.api_keys = True, [sys.argv[2]]
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
