"""Those who do the work, each in as many processes as are wanted.

    loop      folds what comes into journals, and has done what is owed then
    model     makes model calls
    tools     runs tool calls
    dispatch  talks with people on channels
    projector writes down beside the loops what others look at

Of a loop worker: `taking` (what it is told, and whether it fits), `signalled`, `keepers` (the loops that it
has in mind), `relatives` (other loops that are told), `handing_out` (what is done here, and what elsewhere),
`near` (who else is here), `turns`. Of all: `agents` (those whose code is here), `stopping` and `detaching`
(how they are told that nobody waits for them any more), `remembered`.

Rules: a worker keeps nothing that matters. It acknowledges a message when what came of it is durable, so that
the end of a worker, at any moment, only means that somebody else does it.
"""
