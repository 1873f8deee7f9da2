"""What all engines that speak over HTTP share; nothing here knows a vendor.

    codec.call(request) ──> Call ──> transport ──> Reply ──> codec.result(…), or codec.reader(…) for a stream

A vendor's folder has a `Codec`: pure, requests to the vendor's JSON and its JSON back, one file each way. The
`HTTPEngine` makes an engine of it. `transport` is the seam to the network, `aio` the one that really is on it
(aiohttp: one pool of connections an engine and event loop, time-outs, proxies), `cassette` one that records
another's traffic, or plays it back. `two_steps` is for servers that take tools or a schema, and not both.

Rules kept here:
- every failure is of the taxonomy (`failures`): the network's, the server's, and an answer that is none;
- cancelling a call, or closing its stream, closes the connection behind it: the server notices;
- however a stream is cut into chunks, it is the same stream (`sse`);
- no key reaches an error, a journal or a cassette (`secrets`);
- a call that is made in tests without leave is refused (`check_model_requests_allowed`).
"""
