"""How fast flyball is, beside a hand-written loop on the same work. README.md says how to read it.

    workloads, floor    what is measured, and the loop that nobody beats: copies, kept byte for byte
    flyball_peer        flyball on the workloads
    rows                what is measured, each with its budget
    command, table      the command, the fresh processes it starts, and what it prints
    asking              what a framework is asked for, and what must come of it
    figures, timing     CPU time of several things, taken in turns
    proof               that the work was really done, proven from the journal
    runs                the workloads W1 to W6
    memory, peak, storage, growth, startup      the other rows
    nats, http, api     loops on NATS, model calls over HTTP, the HTTP API
    sizing              a region, simulated from what was measured of one partition
    peers               flyball beside other frameworks, each in an environment of its own

The copies are imported by bare names, so this folder is on the path; what is measured is this checkout.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SOURCE = ROOT / "src"

if str(SOURCE) not in sys.path:
    sys.path.insert(0, str(SOURCE))
if str(HERE) not in sys.path:
    sys.path.append(str(HERE))
