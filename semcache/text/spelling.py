"""Whether one English word is a slip of the other: a letter doubled, left out, mistaken or exchanged with the next.

Pure. Knows no dictionary, so it only believes slips inside long words, and a list of real words that look like one.
"""

from __future__ import annotations

VOWELS = frozenset("aeiouy")
MIN_LETTERS = 5  # "form" and "from"
MIN_LETTERS_LEFT_OUT = 6
KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
# Real words that are a slip apart, as stems.
BOTH_REAL = frozenset(
    frozenset(pair.split())
    for pair in (
        "desert dessert", "carton cartoon", "united untied", "casual causal", "martial marital",
        "sacr scar", "sacred scared", "angel angl", "angel angle", "trial trail", "diary dairy", "quiet quit",
        "father farther", "infect inflect", "singer signer", "dinner diner", "supper super", "planner planer",
        "filler filer", "statue statute", "breath breadth", "though through", "county country",
        "silver sliver", "infection inflection", "defection deflection", "mediation medication", "collision collusion",
        "prescription proscription", "ingenious ingenuous", "immanent imminent", "discreet discrete",
        "confidant confident", "reflection refection", "transmission transition",
        "tired tried", "complement compliment", "stationary stationery", "conservation conversation",
        "calvary cavalry", "contract contact", "country county", "thorough through", "through though",
        "reality realty", "council counsel", "career carrier", "mediation meditation", "adverse averse",
        "insurance assurance", "morning mourning", "college collage",
        "corporation cooperation", "preposition proposition", "perspective prospective", "personal personnel",
        "president precedent", "prescribe proscribe", "statute statue", "veteran veterinarian", "marry mary",
        "friend fiend", "breath breadth", "access excess", "affect effect", "adopt adapt", "later latter",
        "emigrat immigrat", "inter intern", "weather whether", "window widow", "invest infest",
    )
)  # fmt: skip


def is_misspelt(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=lambda word: (len(word), word))
    if (
        len(shorter) < MIN_LETTERS
        or one == other
        or not (one + other).isalpha()
        or not (one + other).isascii()
    ):
        return False
    if frozenset((one, other)) in BOTH_REAL or one[:2] != other[:2]:
        return False
    place = next(index for index in range(len(longer)) if shorter[: index + 1] != longer[: index + 1])
    if len(shorter) == len(longer):
        return _is_exchanged(shorter, longer, place) or _is_mistaken(shorter, longer, place)
    if shorter[place:] != longer[place + 1 :]:
        return False
    is_doubled = longer[place] == longer[place - 1]
    is_inside = place < len(longer) - 1
    is_left_out = len(shorter) >= MIN_LETTERS_LEFT_OUT and one[-2:] == other[-2:]
    return is_inside and (is_left_out or (is_doubled and len(longer) > MIN_LETTERS))


def _is_exchanged(one: str, other: str, place: int) -> bool:
    return one[place : place + 2] == other[place : place + 2][::-1] and one[place + 2 :] == other[place + 2 :]


def _is_mistaken(one: str, other: str, place: int) -> bool:
    """Another vowel inside, or the key beside the right one, in a word long enough to be still itself."""
    if one[place + 1 :] != other[place + 1 :] or one[-2:] != other[-2:] or len(one) <= MIN_LETTERS:
        return False
    return {one[place], other[place]} <= VOWELS or (
        len(one) > MIN_LETTERS + 1 and _are_neighbours(one[place], other[place])
    )


def _are_neighbours(one: str, other: str) -> bool:
    return any(one + other in row or other + one in row for row in KEYS)
