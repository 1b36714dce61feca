"""The stories: English-like text from a seeded probabilistic grammar, with a known probability for every byte.

A story has a hero, a friend, a thing that changes hands and gets hidden, things that are counted, weather and hours:
an opening introduces them, paragraphs of sentences change them, a closing remembers them. Stories follow one another
without end, separated by an empty line. Everything is a choice point of `tinyllm.texts.choice`.
"""

import hashlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from tinyllm.rng import stream
from tinyllm.texts import vocabulary as words
from tinyllm.texts.choice import Alternative, ChoicePoint, Program, derivation, determined, literal, point
from tinyllm.texts.clauses import PAST, plain_objects, stop
from tinyllm.texts.dialogue import dialogue
from tinyllm.texts.opening import opening
from tinyllm.texts.sentences import predicate
from tinyllm.texts.world import (
    ANIMAL,
    ANIMAL_LOOK,
    CONTAINER,
    CONTAINER_FOILS,
    FEELING,
    PAIR,
    PLACE,
    QUALITY,
    TRADE,
    Who,
    World,
    among,
    hiding_place,
    many,
    new_thing,
    one_of,
    person,
    somewhere,
    the_counted,
    the_thing,
    their,
    was,
)

KEY = 20240607  # of every stream of the stories


def source() -> Program:
    """Write stories for ever: the program that is the source of the text."""
    while True:
        yield from story()
        yield literal("\n\n")


def story() -> Program:
    """Write one story, without the empty line after it."""
    w = World()
    yield from opening(w)
    yield literal("\n")
    while True:
        w.paragraphs += 1
        closed = yield from paragraph(w)
        if closed:
            return


GAP = point((" ", 3, True), ("\n", 1, False))


def paragraph(w: World) -> Program:
    """Write sentences up to a paragraph's end; return whether they closed the story."""
    first = True
    while True:
        kind, who = yield beginnings(w, closes=first and w.paragraphs > 1)
        yield from SENTENCES[kind](w, who)
        if kind == "closing":
            return True
        first = False
        if not (yield GAP):
            return False


CONNECTORS = tuple((text, weight, ("after", PAIR)) for text, weight, _ in among(words.CONNECTORS, lead=""))
SCENERY = tuple((text, weight, ("scenery", PAIR)) for text, weight, _ in among(words.SCENERY, lead=""))
SPOKEN: Alternative = ('"', 45, ("dialogue", PAIR))
CLOSINGS = tuple(
    (text, weight, ("closing", PAIR))
    for text, weight, _ in among(
        words.listed("In_the_end, From_that_day_on, Years_later, By_the_next_day, Ever_since, That_is_how"),
        lead="",
        scale=6,
    )
)


def beginnings(w: World, *, closes: bool) -> ChoicePoint:
    """Return how the next sentence may begin; the value is its (kind, subject)."""
    thing, counted = f"{w.adjective} {w.thing}", f"{words.NUMBERS[w.count]} {many(w)}"
    return _beginnings(*w.people, w.focus, (thing, counted, w.weather), hour=w.hour, closes=closes)


@lru_cache(maxsize=1 << 14)
def _beginnings(
    hero: Who, friend: Who, focus: Who, topics: tuple[str, str, str], *, hour: int, closes: bool
) -> ChoicePoint:
    thing, counted, weather = topics
    rows: list[Alternative] = [
        (hero.name, 20, ("who", hero)),
        (friend.name, 20, ("who", friend)),
        (focus.they.capitalize(), 30, ("pronoun", focus)),
        ("Both", 8, ("who", PAIR)),
        (f"The {thing}", 10, ("thing", PAIR)),
        (f"The {counted}", 8, ("counted", PAIR)),
        (f"The {weather}", 8, ("weather", PAIR)),
    ]
    rows += [(f"{words.HOURS[later]},", 6, ("hour", later)) for later in range(hour + 1, len(words.HOURS))]
    return ChoicePoint([*rows, SPOKEN, *CONNECTORS, *SCENERY, *(CLOSINGS if closes else ())])


def by_name(w: World, who: Who) -> Program:
    """Write what the subject just named did."""
    yield from predicate(w, who)


def by_pronoun(w: World, who: Who) -> Program:
    """Write what the subject meant by a pronoun did."""
    yield from predicate(w, who, named=False)


def subject_then(w: World, _: Who) -> Program:
    """Write a subject after a connector, and what it did."""
    pronoun = w.focus.they
    who = yield point(*((f" {who.name}", 5, who) for who in w.people), (f" {pronoun}", 6, None), (" both", 2, PAIR))
    yield from predicate(w, who or w.focus, named=who is not None)


def by_hour(w: World, hour: int) -> Program:
    """Write what somebody did at an hour; hours only go forward."""
    w.hour = hour
    yield from subject_then(w, PAIR)


def scenery(w: World, _: Who) -> Program:
    """Write what some animal did somewhere."""
    yield ANIMAL_LOOK
    yield ANIMAL
    yield one_of(words.BEASTLY)
    yield from somewhere()
    yield from stop(w)


def weather(w: World, _: Who) -> Program:
    """Write what the weather did, or how it changed."""
    others = tuple(kind for kind in words.WEATHER if kind != w.weather)
    changes = point(*among(words.RAINS[w.weather], scale=3), (" gave way to", 12, "changed"))
    if (yield changes) == "changed":
        w.weather = yield one_of(others)
    yield from stop(w)


def thing(w: World, _: Who) -> Program:
    """Write about the story's thing, just named: whose it is, where it lies, or what it is worth."""
    hidden = [(" was still", 4, "hidden")] if w.hidden else []
    choice = yield point(
        (" now belonged to", 3, "owner"), (" was worth more than", 3, "worth"), (" reminded", 3, "like"), *hidden
    )
    if choice == "owner":
        yield person(w, w.owner, "owner")
    elif choice == "hidden":
        yield from hiding_place(w)
    elif choice == "worth":
        yield from new_thing()
    else:
        yield point(*((f" {who.name} of", 1, who) for who in w.people))
        yield from new_thing()
    yield from stop(w)


def counted(w: World, _: Who) -> Program:
    """Write about the counted things, just named."""
    choice = yield point((" lay in", 3, "lay"), (" had come from the", 3, "from"), (" would go to the", 3, "to"))
    if choice == "lay":
        yield person(w, w.hero, "hero")
        yield literal("'s")
        yield determined("container", f" {w.container}", CONTAINER_FOILS)
    elif choice == "from":
        yield PLACE
    else:
        yield TRADE
    yield from stop(w)


def closing(w: World, _: Who) -> Program:
    """Write the last sentence: what came of the story's thing, its count, and its people."""
    who = yield point(*((f" {who.name}", 2, who) for who in w.people), (" both", 1, PAIR))
    choice = yield point(
        (" kept", 2, "kept"), (" forgot", 3, "forgot"), (" became", 2, "became"), (" went home", 3, "home")
    )
    if choice == "kept":
        yield from new_thing()
        yield literal(" in")
        yield their(who)
        yield CONTAINER
    elif choice == "forgot":
        yield literal(" about the")
        yield from the_thing(w)
        yield literal(" and")
        kind = yield PAST
        yield from plain_objects(kind)
    elif choice == "became":
        yield QUALITY
        yield TRADE
    else:
        yield literal(" with")
        yield from the_counted(w)
    yield literal(" and")
    yield was(who.was)
    yield FEELING
    yield literal(".")


SENTENCES: dict[str, Callable[[World, Any], Program]] = {
    "who": by_name,
    "pronoun": by_pronoun,
    "after": subject_then,
    "scenery": scenery,
    "weather": weather,
    "thing": thing,
    "counted": counted,
    "dialogue": dialogue,
    "closing": closing,
    "hour": by_hour,
}


def text(name: str, n_bytes: int) -> bytes:
    """Return the first `n_bytes` of the stories of one stream: an exact sample of the source, cut where it falls."""
    parts: list[bytes] = []
    length = 0
    for current, index in derivation(source(), stream(KEY, name)):
        parts.append(current.texts[index])
        length += len(parts[-1])
        if length >= n_bytes:
            break
    return b"".join(parts)[:n_bytes]


def whole_stories(name: str) -> Iterator[bytes]:
    """Yield the stories of one stream one by one, each with the empty line after it."""
    rng = stream(KEY, name)
    while True:
        yield b"".join(current.texts[index] for current, index in derivation(story(), rng)) + b"\n\n"


@lru_cache
def grammar_sha256() -> str:
    """Return the identity of the grammar: a hash over the choice points and choices of a fixed stream.

    Any change of a word, a weight or a rule that the first 128 KiB of the stream meet changes it.
    """
    digest = hashlib.sha256()
    seen: dict[tuple[tuple[bytes, ...], tuple[int, ...]], int] = {}  # numbered as met
    length = 0
    for current, index in derivation(source(), stream(KEY, "stories/fingerprint")):
        content = (current.texts, current.weights)
        if content not in seen:
            seen[content] = len(seen)
            digest.update(repr(content).encode())
        digest.update(f"{seen[content]} {index};".encode())
        length += len(current.texts[index])
        if length >= 1 << 17:
            return digest.hexdigest()
    raise AssertionError("the source never ends")
