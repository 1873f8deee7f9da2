"""Characters of the same look as a plain one: a small table of our own, of what can be typed.

Unicode's own list of confusables has thousands, most of them of no alphabet that is in use.
"""

from __future__ import annotations

ALIKE: dict[str, str] = {
    # Cyrillic
    **dict(zip("авекмнорстухіјѕԁԛԝһӏьѵүгпҽӕ", "abekmhopctyxijsdqwhlbvyrnea", strict=True)),
    **dict(zip("АВЕКМНОРСТУХІЈЅԀԚԜҺӀЬѴҮ", "ABEKMHOPCTYXIJSDQWHIBVY", strict=True)),
    # Greek
    **dict(zip("αβγεηικνορςτυχωϳ", "abyenikvopctuxwj", strict=True)),
    **dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧͿ", "ABEZHIKMNOPTYXJ", strict=True)),  # noqa: RUF001 - so they are
    # Latin letters with strokes, without dots, and small capitals
    **dict(zip("øłđħŧɵƒıɡɑȷØŁĐĦŦ", "oldhtofigajOLDHT", strict=True)),
    **dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnoprstuvwyz", strict=True)),
    # Armenian
    **dict(zip("օոսհց", "onuhg", strict=True)),  # noqa: RUF001 - so they are
    # Hyphens that are none by their category, full stops, apostrophes
    **dict.fromkeys("\u00af\u02d7\u2043\u2212", "-"),
    **dict.fromkeys("\u3002\uff61\u2024", "."),
    **dict.fromkeys("\u2018\u2019\u02bc\u2032", "'"),
}
"""What each of them is taken for."""
