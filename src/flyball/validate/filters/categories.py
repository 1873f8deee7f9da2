"""What moderation looks for, by category: phrases, and how sure each of them makes it.

A phrase is found word by word, in any case, whatever stands between its words. These lists are short and in
English, and meant to be extended or replaced: they are what a text must say to be found, not all that is bad.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from flyball.core.errors import UserError
from flyball.core.violation import Severity
from flyball.validate.filters.plain import words

SURE, LIKELY, PERHAPS = 0.95, 0.7, 0.4
"""How sure a phrase makes it: enough to block, enough to note, and only with others."""


class ModerationCategory(Struct, frozen=True):
    """A name, phrases with how sure each makes it (from 0 to 1), and how bad it is.

    One without phrases is for what a judge says.

    Raises:
        UserError: a phrase without a word, or a number that is none from 0 to 1.
    """

    name: str
    phrases: Mapping[str, float] = {}
    severity: Severity = Severity.HIGH

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"a category has a name, not {self.name!r}")
        for phrase, sure in self.phrases.items():
            if not isinstance(phrase, str) or not words(phrase):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise UserError(f"category {self.name!r}: a phrase has words, not {phrase!r}")
            if type(sure) not in (int, float) or not 0 < sure <= 1:
                raise UserError(f"category {self.name!r}: {phrase!r} is sure by 0 to 1, not by {sure!r}")

    def extended(self, phrases: Mapping[str, float]) -> ModerationCategory:
        """The same with more phrases; one that it has gets the new number."""
        return ModerationCategory(self.name, {**self.phrases, **phrases}, self.severity)


def _category(name: str, severity: Severity, sure: str, likely: str, perhaps: str = "") -> ModerationCategory:
    weighed = ((sure, SURE), (likely, LIKELY), (perhaps, PERHAPS))
    return ModerationCategory(
        name, {one.strip(): by for said, by in weighed for one in said.split(",") if one.strip()}, severity
    )


CATEGORIES: dict[str, ModerationCategory] = {
    one.name: one
    for one in (
        _category(
            "harmful",
            Severity.CRITICAL,
            "how to make a bomb, how to build a bomb, build a pipe bomb, make a pipe bomb, make nerve gas, "
            "synthesize sarin, synthesise sarin, make ricin, cook meth, how to make meth, "
            "how to poison someone, poison the water supply",
            "homemade explosives, improvised explosive device, dirty bomb, write ransomware, write malware",
            "explosives, detonator, nerve agent, malware, ransomware",
        ),
        _category(
            "illegal",
            Severity.HIGH,
            "child pornography, hire a hitman, hire a hit man, buy stolen credit cards, "
            "how to launder money, print counterfeit money, buy a fake passport",
            "launder money, counterfeit money, stolen credit cards, fake passport, forge a signature, "
            "pick a lock without getting caught, buy cocaine, buy heroin, evade customs",
            "money laundering, counterfeit, cocaine, heroin",
        ),
        _category(
            "hate",
            Severity.HIGH,
            "gas the jews, kill all jews, kill all muslims, kill all christians, kill all gays, "
            "kill all blacks, kill all whites, kill all immigrants, exterminate the jews, heil hitler",
            "subhuman race, inferior race, master race, white power, go back to your country",
            "subhuman, vermin, race traitor",
        ),
        _category(
            "sexual",
            Severity.MEDIUM,
            "write hardcore porn, write explicit porn, sexually explicit story, explicit sex scene",
            "hardcore porn, describe sex in detail, sex chat with me, talk dirty to me",
            "porn, erotica, nude",
        ),
        _category(
            "violence",
            Severity.HIGH,
            "i will kill you, i am going to kill you, going to shoot up, how to kill someone, "
            "how to torture someone, how to get away with murder",
            "beat him to death, beat her to death, torture him, torture her, stab him, stab her, "
            "slit his throat, slit her throat",
            "torture, behead, massacre",
        ),
        _category(
            "self_harm",
            Severity.CRITICAL,
            "how to kill myself, i want to kill myself, i am going to kill myself, how to commit suicide, "
            "best way to kill myself, painless way to die",
            "kill myself, kill yourself, end my life, cut myself, want to die, better off dead",
            "suicide, suicidal, self harm",
        ),
    )
}
"""The categories that there are, by name."""
