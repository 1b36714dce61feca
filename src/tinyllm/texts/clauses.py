"""Verbs with their objects, and what may follow them in a sentence: place, manner, reason, what else, what next.

Verbs come in five kinds by what they take: `use` a thing, `eat` food, `watch` an animal, `rest` nothing, `move` a way
there.
"""

from functools import lru_cache

from tinyllm.texts import vocabulary as words
from tinyllm.texts.choice import Alternative, ChoicePoint, Program, literal, point
from tinyllm.texts.world import (
    A_THING,
    ANIMAL,
    ANIMAL_LOOK,
    FEELING,
    FOOD,
    FOOD_LOOK,
    LOOK_ROWS,
    PAIR,
    PLACE,
    THING,
    Who,
    World,
    among,
    new_thing,
    one_of,
    the_thing,
    their,
    was,
)

VERB_LISTS = (
    ("use", words.USES, 3),
    ("eat", words.EATS, 2),
    ("watch", words.WATCHES, 2),
    ("rest", words.RESTS, 2),
    ("move", words.MOVES, 2),
)


def verbs(form: int) -> tuple[Alternative, ...]:
    """Return every verb in its base form (0) or past (1); the value is the verb's kind."""
    return tuple(
        (text, weight, kind)
        for kind, pairs, scale in VERB_LISTS
        for text, weight, _ in among([pair[form] for pair in pairs], scale=scale)
    )


BASE, PAST = point(*verbs(0)), point(*verbs(1))
ADVERBS = tuple((text, 2 * weight, "adverb") for text, weight, _ in among(words.ADVERBS))
TOWARD = point((" to the", 4, ""), (" toward the", 2, ""), (" around the", 2, ""), (" across the", 1, ""))


@lru_cache
def things(their: str) -> ChoicePoint:
    """Return how a thing as object begins: some thing, the story's thing, or one of the subject's own."""
    return point(*LOOK_ROWS, (" the same", 14, "same"), (f" {their}", 20, "their"))


def objects(w: World, who: Who, kind: str) -> Program:
    """Write the object that a kind of verb takes."""
    if kind == "use":
        choice = yield things(who.their)
        if choice == "same":
            yield from the_thing(w)
        else:
            yield THING
    elif kind == "eat":
        yield literal(" the")
        yield FOOD_LOOK
        yield FOOD
    elif kind == "watch":
        yield ANIMAL_LOOK
        yield ANIMAL
    elif kind == "move":
        yield TOWARD
        yield PLACE


@lru_cache(maxsize=1024)
def tails(companion: str, *, lists: bool) -> ChoicePoint:
    """Return what may follow a verb and its object; a thing may be the first of three."""
    return point(
        *([(",", 80, "list")] if lists else []),
        (".", 60, "."),
        *((text, 3 * weight, "near") for text, weight, _ in among(words.NEARNESS)),
        *((text, weight, "end") for text, weight, _ in among(words.MANNERS)),
        (f" together with {companion}", 12, "end"),
        (" because", 30, "because"),
        (" while", 20, "while"),
        (" and", 110, "then"),
        (" but", 15, "but"),
    )


ENDINGS = point(
    (".", 10, "."), (" and", 3, "then"), (" because", 2, "because"), (" while", 1, "while"), (" but", 1, "but")
)
STOPS = point((".", 6, "."), (" while", 1, "while"))


def tail(w: World, who: Who, *, lists: bool = False) -> Program:
    """Write where, how, why or what next, up to the full stop."""
    choice = yield tails("the children" if who is PAIR else w.other(who).name, lists=lists)
    if choice == "list":
        yield A_THING
        yield literal(" and")
        yield A_THING
    if choice == "near":
        yield literal(" the")
        yield PLACE
    if choice in ("near", "end", "list"):
        yield from ending(w, who)
    elif choice != ".":
        yield from CLAUSES[choice](w, who)


def ending(w: World, who: Who) -> Program:
    """Write the full stop, or one clause more."""
    choice = yield ENDINGS
    if choice != ".":
        yield from CLAUSES[choice](w, who)


def stop(w: World) -> Program:
    """Write the full stop of a sentence that is not about a person, or what the hero did at the same time."""
    choice = yield STOPS
    if choice != ".":
        yield from meanwhile(w, w.people[1])


def because(w: World, who: Who) -> Program:
    """Write a reason: a feeling, a wish, a loss or the weather, of the subject or of the other."""
    other = [] if who is PAIR else [(f" {w.other(who).name}", 3, w.other(who))]
    subject = yield point((f" {who.they}", 5, who), *other, (f" the {w.weather}", 2, None))
    if subject is None:
        yield one_of(words.RAINS[w.weather])
        yield literal(".")
        return
    copula = who.they_was if subject is who else subject.was
    choice = yield point((f" {copula}", 4, "was"), *REASON_ROWS)
    if choice == "was":
        yield FEELING
    elif choice == "to":
        kind = yield BASE
        yield from plain_objects(kind)
    elif choice == "lost":
        yield their(subject)
        yield THING
    else:
        yield from new_thing()
    yield literal(".")


REASON_ROWS = (" wanted to", 4, "to"), (" had lost", 2, "lost"), (" needed", 3, "needed")


def plain_objects(kind: str) -> Program:
    """Write an object that the story does not follow."""
    if kind == "use":
        yield from new_thing()
    else:
        yield from objects(World(), PAIR, kind)


def meanwhile(w: World, who: Who) -> Program:
    """Write what the other did at the same time."""
    yield point((f" {w.other(who).name}", 4, ""), *among([f"the {name}" for name in words.TRADES]))
    kind = yield PAST
    yield from plain_objects(kind)
    yield literal(".")


def then(w: World, who: Who) -> Program:
    """Write what the subject did next."""
    kind = yield PAST
    yield from objects(w, who, kind)
    yield literal(".")


def but(w: World, who: Who) -> Program:
    """Write what stood against it: the subject, who still felt something, or the other, who did something else."""
    other = [] if who is PAIR else [(f" {w.other(who).name}", 4, "other")]
    choice = yield point((f" {who.they}", 4, "they"), *other, (" nobody", 2, "other"))
    if choice == "they":
        yield was(who.they_was)
        yield literal(" still")
        yield FEELING
    else:
        kind = yield PAST
        yield from plain_objects(kind)
    yield literal(".")


CLAUSES = {"because": because, "while": meanwhile, "then": then, "but": but}
