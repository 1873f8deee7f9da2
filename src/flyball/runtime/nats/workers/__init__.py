"""Those who do the work, each in as many processes as are wanted.

    loop     folds what comes into journals, and asks the others for what is owed
    model    makes model calls
    tools    runs tool calls
    stopping how they are told that nobody waits for them any more
    agents   the agents whose code is here

Rules: a worker keeps nothing that matters. It acknowledges a message when what came of it is durable, so that
the end of a worker, at any moment, only means that somebody else does it.
"""
