"""Channels: people talk with agents wherever they are, in SemStreams' words.

    address         where somebody talks, and so where they are answered
    identity        which of the things that are said are the same, said again
    attachments     what is attached, as parts of a message; and back
    blocks          an answer as prose, code, diffs, files
    telling         what a person is told of a loop, from its journal; pure
    audience        who is told of a loop, and what each may see
    following       what they are told of it and of those under it, as it happens
    retelling       the same again, each thing with its place in an order that stays the same
    conversations   a person's loops at one place, each going on from the one before
    commands        what is said with a slash
    dispatcher      Dispatcher: takes what people say; `taken` is what came of it
    follower        who is told what is told on a channel
    outbox          what a process tells people, each thing once

A channel (a terminal, an HTTP API, a chat program's bridge) brings `UserMessage` and `UserSignal`, and takes
`UserResponse` away. It knows who speaks; it has no logic of its own.
"""

from flyball.orchestrate.channels.address import Address
from flyball.orchestrate.channels.attachments import attachment_of, message_of, part_of
from flyball.orchestrate.channels.blocks import blocks_of
from flyball.orchestrate.channels.commands import Asked, Command
from flyball.orchestrate.channels.dispatcher import Dispatcher
from flyball.orchestrate.channels.telling import Telling, signal_of

__all__ = [
    "Address",
    "Asked",
    "Command",
    "Dispatcher",
    "Telling",
    "attachment_of",
    "blocks_of",
    "message_of",
    "part_of",
    "signal_of",
]
