"""The terminal UI, `flyball tui`: a client of the HTTP API, and nothing else.

    app                 FlyballApp: the screens, and the command palette
    runs run chat turn  the screens: all runs; one run; a conversation with an agent; a turn of a run
    page dialogs chats  what screens share; what is asked in the middle of something, and with whom to talk
    approvals results   calls that wait for a person's word, and for a result from outside
    prompt pasting      where one writes; pastes, which come in whole
    following           a loop that is followed, and what is asked about it meanwhile
    transcript          what was said in a loop, from its events and pieces: pure
    listing             rows that unfold, as many as there are: the one widget that shows what others wrote
    rows                rows of what was said; `step_rows`, `run_rows` and `turn_rows` are of the others
    lines wrapping      styled lines; text cut into them; `markdown` is text that answers are written in
    client connection   the API's operations, typed; requests and streams
    frames              server-sent events, out of bytes

Rules:
- Nothing is known here that the API does not tell, and nothing is decided here: what is shown are projections
  of the journal, and what a person says is a signal.
- What comes from models, tools and journals is shown by `Listing` or by `words`: both make it harmless, and
  neither reads markup in it. It is cut before it is drawn, however long it is.
- What is pasted is harmless, too, and is never a key.
- A connection that is lost is shown, and mended by itself. What was said meanwhile is sent then.
- No key decides about a call that was meant for something else: whoever writes keeps the focus.
"""
