"""What somebody does in a story: the predicate that follows a subject, up to the full stop.

Special predicates (give, hide, come upon, discover, keep) change the state that later sentences must agree with.
"""

from functools import lru_cache

from tinyllm.texts import vocabulary as words
from tinyllm.texts.choice import ChoicePoint, Program, determined, literal, point
from tinyllm.texts.clauses import ADVERBS, BASE, CLAUSES, PAST, ending, objects, plain_objects, stop, tail, verbs
from tinyllm.texts.world import (
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
    person,
    somewhere,
    the_counted,
    the_thing,
    their,
    themself,
)


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
        who.was if named else who.they_was,
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
