"""The HTTP adapter: the system's own API, OpenAI's protocol, server-sent events. `flyball serve` runs it.

    operations   what can be asked for: one table, of which routes, scopes and the OpenAPI document are made
    asking       one request: who asks, and for what; answers and problems are its other end
    gate         what every request passes: ids, tokens, limits, numbers, a line in the log
    hub          who follows loops: each is read once, however many follow it; course is what they are told
    position     where somebody was in a loop's stream who comes back
    openai       the protocols of OpenAI's API, server side: codecs, and routes that know no web framework
    app, server  all of it together, and behind a socket

Rules: an adapter translates and nothing else. A request becomes one call of a `Service`, and what that gives
becomes a document or a stream; whatever goes wrong becomes a problem with the taxonomy's code. What is here
knows no journal and no engine.
"""
