"""How a story begins: somebody somewhere; then a friend, a thing, some counted things and the weather, in any order."""

from functools import lru_cache

from tinyllm.texts import vocabulary as words
from tinyllm.texts.choice import Program, literal, point
from tinyllm.texts.world import (
    CONTAINER,
    EVERYBODY,
    LOOK,
    PLACE,
    QUALITY,
    RELATIVE,
    THING,
    TRADE,
    VILLAGE,
    Who,
    World,
    among,
    new_thing,
    one_of,
    somewhere,
    their,
)

WEATHER_LOOKS = {
    "rain": "rainy",
    "wind": "windy",
    "fog": "foggy",
    "snow": "snowy",
    "sunshine": "sunny",
    "thunder": "stormy",
    "frost": "frosty",
    "heat": "hot",
}
DAYS = words.listed("day morning afternoon evening Sunday Monday Tuesday Wednesday Thursday Friday Saturday")
MONTH = one_of(words.MONTHS)
DAY = one_of(DAYS)


@lru_cache
def names(lead: str, *known: Who) -> tuple[tuple[str, int, Who], ...]:
    """Return the alternatives for somebody who is not in the story yet."""
    return tuple((lead + who.name, 1, who) for who in EVERYBODY if who not in known)


def opening(w: World) -> Program:
    """Write the first paragraph."""
    choice = yield point(
        *names(""),
        ("Once, in", 8, "village"),
        ("One", 12, "day"),
        ("Long ago, the", 8, "trade"),
        ("There was once", 5, "once"),
    )
    if isinstance(choice, str):
        yield from FIRST[choice](w)
    else:
        w.people.append(choice)
        yield from biography(w)
    w.focus = w.hero
    missing = ["friend", "thing", "count"] + ([] if w.weather else ["weather"])
    while missing:
        topic = yield point(*(row for name in missing for row in introductions(name, w.hero)))
        missing.remove(topic[0])
        yield from INTRODUCE[topic[0]](w, topic[1])


def biography(w: World) -> Program:
    """Write about the hero just named: what, and where."""
    choice = yield point((" was", 5, "was"), (", the", 3, "the"), (" had come to", 2, "come"))
    if choice == "was":
        yield QUALITY
        w.trade = yield TRADE
        choice = yield point((" from", 3, "from"), (" who lived", 3, "lived"), (" with", 2, "with"))
        if choice == "from":
            yield VILLAGE
        elif choice == "lived":
            yield from somewhere()
        else:
            yield from new_thing()
    elif choice == "the":
        w.trade = yield TRADE
        yield literal(" of")
        yield VILLAGE
        yield literal(", was")
        yield QUALITY
        yield literal(" soul")
    else:
        yield VILLAGE
        yield literal(" to work as a")
        w.trade = yield TRADE
    yield literal(".")


def in_a_village(w: World) -> Program:
    """Write "Once, in …, there lived …"."""
    yield VILLAGE
    choice = yield point((" there lived", 3, ""), (", near the", 2, "near"))
    if choice == "near":
        yield PLACE
        yield literal(", lived")
    yield QUALITY
    w.trade = yield TRADE
    yield literal(" named")
    w.people.append((yield point(*names(" "))))
    yield literal(".")


def one_day(w: World) -> Program:
    """Write "One foggy Sunday in March, … came to …"."""
    w.weather = yield point(*((f" {look}", 1, kind) for kind, look in WEATHER_LOOKS.items()))
    yield DAY
    yield literal(" in")
    yield MONTH
    yield literal(",")
    w.people.append((yield point(*names(" "))))
    yield literal(" the")
    w.trade = yield TRADE
    choice = yield point(
        (" found", 4, "thing"), (" came to", 2, "came"), (" lost", 3, "thing"), (" dreamed of", 2, "thing")
    )
    if choice == "came":
        yield VILLAGE
    else:
        yield from new_thing()
        yield from somewhere()
    yield literal(".")


def the_trade_of(w: World) -> Program:
    """Write "The potter of … was named …"."""
    w.trade = yield TRADE
    yield literal(" of")
    yield VILLAGE
    choice = yield point((" was", 3, "was"), (", whose name was", 2, "name"))
    if choice == "was":
        yield QUALITY
        yield literal(" person named")
    w.people.append((yield point(*names(" "))))
    if choice == "name":
        yield literal(", lived")
        yield from somewhere()
    yield literal(".")


def there_was_once(w: World) -> Program:
    """Write "There was once a kind potter, …, who …"."""
    yield QUALITY
    w.trade = yield TRADE
    yield literal(",")
    w.people.append((yield point(*names(" "))))
    yield literal(", who owned")
    yield from new_thing()
    yield literal(" and")
    yield from new_thing()
    yield literal(".")


FIRST = {"village": in_a_village, "day": one_day, "trade": the_trade_of, "once": there_was_once}


@lru_cache(maxsize=1024)
def introductions(topic: str, hero: Who) -> tuple[tuple[str, int, tuple[str, str]], ...]:
    """Return how a sentence may begin that brings a topic into the story."""
    They, Their = hero.they.capitalize(), hero.their.capitalize()
    texts = {
        "friend": (f" {Their} best friend", f" {hero.name} had a friend,", " Next door lived"),
        "thing": (f" {They} owned", f" {hero.name}'s", f" {hero.name} loved"),
        "count": (f" {They} kept", f" In {hero.their}", f" {hero.name} also had"),
        "weather": (" It was a", " That", " All through"),
    }[topic]
    return tuple((text, 3 - i, (topic, "abc"[i])) for i, text in enumerate(texts))


def friend(w: World, form: str) -> Program:
    """Bring the friend in."""
    if form == "a":
        choice = yield point((",", 2, "comma"), (" was", 3, "was"))
    else:
        choice = form
    w.people.append((yield point(*names(" ", w.hero))))
    if choice == "was":
        yield literal(",")
        yield QUALITY
        yield TRADE
    elif choice == "comma":
        yield literal(", came from")
        yield VILLAGE
    elif choice == "b":
        yield literal(" the")
        yield TRADE
    else:
        yield literal(", who owned")
        yield from new_thing()
    yield literal(".")


def thing(w: World, form: str) -> Program:
    """Bring the thing in that the story follows."""
    if form == "b":
        yield RELATIVE
        yield literal(f" gave {w.hero.them}")
    w.adjective = yield LOOK
    w.thing = yield THING
    w.owner = w.hero
    choice = yield point((".", 3, "."), (" from", 3, "from"), (" that the", 3, "that"), (", better than", 2, "better"))
    if choice == "from":
        yield VILLAGE
        yield literal(".")
    elif choice == "that":
        yield TRADE
        yield one_of(ORIGINS)
        yield literal(".")
    elif choice == "better":
        yield from new_thing()
        yield literal(".")


ORIGINS = words.listed(
    "had_made had_sold had_repaired had_painted had_lost wanted admired feared hated used_to_play_with"
)


def count(w: World, form: str) -> Program:
    """Bring the counted things in, with their container."""
    if form == "b":
        w.container = yield CONTAINER
        yield literal(" there were")
    w.count = yield point(*((f" {words.NUMBERS[k]}", 10 - k, k) for k in range(2, 9)))
    w.counted = yield point(*COUNTED_ROWS)
    if form != "b":
        yield literal(" in")
        yield their(w.hero)
        w.container = yield CONTAINER
    choice = yield point((".", 3, "."), (", next to", 3, "next"), (" from", 2, "from"))
    if choice == "next":
        yield from new_thing()
        yield literal(".")
    elif choice == "from":
        yield VILLAGE
        yield literal(".")


COUNTED_ROWS = tuple(
    (f" {pair[1]}", weight, pair)
    for (_, weight, _), pair in zip(among([many for _, many in words.COUNTED]), words.COUNTED, strict=True)
)


def weather(w: World, form: str) -> Program:
    """Say what the weather was."""
    if form == "a":
        w.weather = yield point(*((f" {look}", 1, kind) for kind, look in WEATHER_LOOKS.items()))
        yield DAY
        yield literal(" in")
        yield MONTH
        yield literal(".")
        return
    if form == "b":
        yield MONTH
        yield literal(" the")
    else:
        yield MONTH
        yield literal(", the")
    w.weather = yield one_of(words.WEATHER)
    yield one_of(words.RAINS[w.weather])
    yield literal(".")


INTRODUCE = {"friend": friend, "thing": thing, "count": count, "weather": weather}
