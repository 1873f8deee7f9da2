"""The terminal UI, `flyball tui`: a client of the HTTP API, and nothing else.

    app                 FlyballApp: the screens, what they share, the command palette
    runs run chat       the screens: all runs; one run; a conversation with an agent
    turn                what was sent and received in one turn
    dialogs             what is asked in the middle of something: a text, a fork, an agent; the keys
    following           a loop that is followed, and what is asked about it meanwhile
    approvals           calls that wait for a person, and what that person says
    transcript          what was said in a loop, from its events and pieces: pure
    listing             rows that unfold, as many as there are: the one widget that shows what others wrote
    rows                the rows: what was said, steps with their bars, runs
    lines wrapping      styled lines; text cut into them
    client connection   the API's operations, typed; requests and streams
    frames              server-sent events, out of bytes

Rules:
- Nothing is known here that the API does not tell, and nothing is decided here: what is shown are projections
  of the journal, and what a person says is a signal.
- What comes from models, tools and journals is shown by `Listing` or by `words`: both make it harmless, and
  neither reads markup in it. It is cut before it is drawn, however long it is.
- A connection that is lost is shown, and mended by itself.
"""
