"""OpenAI's protocols, server side: what a client sends becomes a SystemRequest, and the response theirs.

    errors                  what is refused, in the shape and with the status that their clients know
    reading                 a body read key by key; what is wrong with it names its parameter
    content, tools, formats, sampling      what both protocols take in the same way
    call_ids, going_on      ids of calls that name their loop, and which loop a conversation goes on with
    said, telling           what a client is told of an answer, and what of a stream may be told already
    counting                what was used
    chat_messages, chat_request, chat_writing, chat_stream                     Chat Completions
    response_items, response_request, response_writing, response_stream        Responses
    embeddings, models      the other two
    serving, answering, previous, routes   what is needed of a server, and what it calls

Rules: codecs are pure; any JSON is a request or a `Refused`; every document is one that the official client
takes; a stream's pieces, joined, are the answer that is given without one. Fields that nobody knows are left
alone, those that ask for what cannot be done are refused by their names.
"""
