"""What somebody does in a story: a predicate with its verb, object, place, manner, reason and consequence.

Verbs come in five kinds by what they take: `use` a thing, `eat` food, `watch` an animal, `rest`
nothing, `move` a place.
Special predicates (give, hide, come upon, discover, keep) change the state that later sentences must agree with.
"""

from functools import lru_cache

from tinyllm.texts import vocabulary as words
from tinyllm.texts.choice import Alternative, ChoicePoint, Program, determined, literal, point
from tinyllm.texts.world import (
    A_THING,
    ANIMAL,
    ANIMAL_LOOK,
    CONTAINER,
    CONTAINER_FOILS,
    FEELING,
    FOOD,
    FOOD_LOOK,
    HIDING,
    LOOK_ROWS,
    PAIR,
    PLACE,
    THING,
    TRADE,
    TRADE_FOILS,
    Who,
    World,
    among,
    hiding_place,
    new_thing,
    number,
    one_of,
    person,
    somewhere,
    the_counted,
    the_thing,
    their,
    themself,
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
def predicates(copula: str, *, known: bool, gives: bool, hides: bool, finds: bool) -> ChoicePoint:
    """Return what may follow a subject: an adverb, a verb, or one of the special predicates."""
    special = [(f" {copula} ", 70, "was"), (" told", 40, "told"), (" discovered", 40, "discovered")]
    special += [(" put", 50, "put"), (" promised", 25, "promised")]
    special += [(", the", 40, "trade"), (" still had the", 40, "had")] if known else []
    special += [(" gave", 50, "gave")] if gives else []
    special += [(" hid the", 100, "hid")] if hides else []
    special += [(" came upon the", 100, "recovered")] if finds else []
    return point(*verbs(1), *ADVERBS, *special)


def predicate(w: World, who: Who, *, named: bool = True) -> Program:
    """Write what `who`, just named or meant by a pronoun, did, up to and including the full stop."""
    w.focus = who
    kind = yield predicates(
        who.was if named else who.they_were.split()[1],
        known=named and who is w.hero,
        gives=(who is w.owner and not w.hidden) or (who is w.hero and w.count > 1),
        hides=who is w.owner and not w.hidden,
        finds=bool(w.hidden),
    )
    yield from PREDICATES.get(kind, plain)(w, who, kind)


def plain(w: World, who: Who, kind: str) -> Program:
    """Write a verb's object and what follows it."""
    yield from objects(w, who, kind)
    yield from tail(w, who, lists=kind == "use")


def adverbial(w: World, who: Who, _: str) -> Program:
    """Write the verb after an adverb, and the rest."""
    kind = yield PAST
    yield from plain(w, who, kind)


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


def trade(w: World, who: Who, _: str) -> Program:
    """Write what the hero is, between commas, and a verb."""
    yield determined("trade", f" {w.trade}", TRADE_FOILS)
    yield literal(",")
    yield from adverbial(w, who, "")


ONLY = ("about to", 6, "about"), ("the only one who", 3, "only"), ("never again", 2, "again")
FEELS = point(*((text.lstrip(), 2 * weight, "") for text, weight, _ in among(words.FEELINGS)), *ONLY)
FELT = point((".", 2, "."), (" and", 4, "and"), (" because", 4, "because"), (" but", 3, "but"))


def felt(w: World, who: Who, _: str) -> Program:
    """Write a feeling and its reason, or what somebody was about to do."""
    choice = yield FEELS
    if choice == "about":
        kind = yield BASE
        yield from plain(w, who, kind)
    elif choice == "only":
        yield from adverbial(w, who, "")
    else:
        if choice == "again":
            yield FEELING
        choice = yield FELT
        if choice == "and":
            yield FEELING
            yield literal(".")
        elif choice != ".":
            yield from CLAUSES[choice](w, who)


def told(w: World, who: Who, _: str) -> Program:
    """Write whom somebody told what."""
    other = w.other(who)
    friend = [] if who is PAIR else [(f" {other.name}", 5, "friend")]
    choice = yield point(*friend, (" the", 3, "trade"), (" everybody", 1, "all"))
    if choice == "trade":
        yield TRADE
    choice = yield point((" about", 5, "about"), (" to", 5, "to"), (" that the", 2, "that"))
    if choice == "about":
        yield from new_thing()
        yield from tail(w, who)
    elif choice == "that":
        yield FOOD
        yield literal(" tasted")
        yield FOOD_LOOK
        yield literal(".")
    else:
        kind = yield BASE
        yield from plain_objects(kind)
        yield from tail(w, who)


def put(w: World, who: Who, _: str) -> Program:
    """Put something into something of one's own."""
    yield from new_thing()
    yield literal(" in")
    yield their(who)
    yield CONTAINER
    yield from ending(w, who)


def promised(w: World, who: Who, _: str) -> Program:
    """Promise oneself something."""
    yield themself(who)
    yield from new_thing()
    yield from ending(w, who)


def had(w: World, who: Who, _: str) -> Program:
    """Say how many of the counted things are left, and where."""
    yield from the_counted(w)
    yield literal(" in")
    yield their(who)
    yield determined("container", f" {w.container}", CONTAINER_FOILS)
    yield from ending(w, who)


def gave(w: World, who: Who, _: str) -> Program:
    """Hand over the story's thing, or one of the counted, which leaves one fewer."""
    thing = [(" the", 3, "thing")] if who is w.owner and not w.hidden else []
    counted = [(" one of the", 3, "one")] if who is w.hero and w.count > 1 else []
    choice = yield point(*thing, *counted)
    if choice == "thing":
        yield from the_thing(w)
        yield literal(" to")
        w.owner = w.other(who)
        yield person(w, w.owner, "recipient")
        yield from ending(w, who)
        return
    yield from the_counted(w)
    friend = w.other(who).name
    yield point((f" to {friend}", 20, ""), *among([f"to the {name}" for name in words.TRADES]))
    yield literal(", so")
    w.count -= 1
    yield number(w, "sum")
    yield literal(" was left" if w.count == 1 else " were left")
    yield from stop(w)


def hid(w: World, who: Who, _: str) -> Program:
    """Hide the story's thing somewhere."""
    yield from the_thing(w)
    preposition = yield HIDING
    yield literal(" the")
    place = yield PLACE
    w.hidden = (preposition, place)
    yield from ending(w, who)


@lru_cache
def finds(counted: tuple[str, str] | None) -> ChoicePoint:
    """Return what may be discovered: some thing, or one to three more of the counted."""
    more = range(1, 4) if counted else ()
    return point(*LOOK_ROWS, *((f" {words.NUMBERS[k]} more {(counted or '')[k > 1]}", 15, k) for k in more))


def discovered(w: World, who: Who, _: str) -> Program:
    """Find some thing somewhere, or more of the counted, which adds to them."""
    more = who is w.hero and w.count + 3 < len(words.NUMBERS)
    choice = yield finds(w.counted if more else None)
    if isinstance(choice, int):
        yield from somewhere()
        yield literal(", which made")
        w.count += choice
        yield number(w, "sum")
        yield from stop(w)
    else:
        yield THING
        yield from somewhere()
        yield from ending(w, who)


def recovered(w: World, who: Who, _: str) -> Program:
    """Find the story's thing where it was hidden, and keep it or give it back."""
    yield from the_thing(w)
    yield from hiding_place(w)
    w.hidden = None
    if who is not w.owner and who is not PAIR:
        choice = yield point((" and kept it", 2, "kept"), (" and returned it to", 3, "returned"))
        if choice == "kept":
            w.owner = who
        else:
            yield person(w, w.owner, "owner")
    yield from ending(w, who)


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


REASONS = ("to", " wanted to", 4), ("lost", " had lost", 2), ("need", " needed", 3), ("fear", " was afraid of", 2)


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
    copula = who.they_were.split()[1] if subject is who else subject.was
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
        yield was(who.they_were.split()[1])
        yield literal(" still")
        yield FEELING
    else:
        kind = yield PAST
        yield from plain_objects(kind)
    yield literal(".")


CLAUSES = {"because": because, "while": meanwhile, "then": then, "but": but}
PREDICATES = {
    "adverb": adverbial,
    "was": felt,
    "told": told,
    "put": put,
    "promised": promised,
    "trade": trade,
    "had": had,
    "gave": gave,
    "hid": hid,
    "discovered": discovered,
    "recovered": recovered,
}
