"""The three systems' own JSON forms, read into our vocabulary and written from it.

`pagantic`, `semstreams` and `gollem` each know one system's keys, exactly. Values are JSON as Python holds it
(dicts, lists, text, numbers); where a system has functions to and from bytes, so has its module.

Rules:
- keys are the systems' own, and what their Go code leaves out when empty is left out here;
- an unknown key is kept in `extra`, at the level where it stood, and written back there. An extra never
  poses as a key that the form knows: such a one is not written;
- a known key that is null counts as missing, as in Go; a missing one has Go's zero value;
- reading and then writing gives the same document, but for what each module names as normalised;
- what our message says and the form has no words for is left out where it is about the message (a signature,
  a time, a count), and is refused with InvalidMessage where it is what the message says (an image);
- whatever comes in, reading gives a value or InvalidMessage, which says what was wrong and where.
"""
