"""ContextPolicy: how retrieved context is put to a model."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from flyball.core.errors import UserError

Placement: TypeAlias = Literal["system", "before_user"]


class ContextPolicy(Struct, frozen=True):
    """The rules that a block of context follows; the defaults are pagantic's.

    - `placement`: `"before_user"`, before what the user said last, or `"system"`, with the instructions.
    - `attribution`: each chunk is told with its source.
    - `ephemeral`: the block is of one turn: it is sent, and never part of the history. Otherwise it is looked
      up once, and stays.
    - `max_tokens`: how long the block may be; 0 for no limit.
    """

    placement: Placement = "before_user"
    attribution: bool = True
    ephemeral: bool = True
    max_tokens: int = 0

    def __post_init__(self) -> None:
        if self.placement not in get_args(Placement):
            raise UserError(f"placement= is 'system' or 'before_user', not {self.placement!r}")
        if type(self.max_tokens) is not int or self.max_tokens < 0:
            raise UserError(f"max_tokens= is a number of tokens, or 0 for no limit, not {self.max_tokens!r}")
        if not self.ephemeral and self.placement != "system":
            raise UserError(
                "context that stays is with the instructions: say placement='system' with ephemeral=False"
            )
