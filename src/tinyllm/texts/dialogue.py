"""What people say: wishes, opinions, news, and questions about the story's state with true answers."""

from tinyllm.texts import vocabulary as words
from tinyllm.texts.choice import Program, determined, literal, point
from tinyllm.texts.clauses import BASE, PAST, plain_objects
from tinyllm.texts.world import (
    ANIMAL,
    ANIMAL_LOOK,
    FEELING,
    FOOD,
    FOOD_LOOK,
    PLACE,
    RELATIVE,
    TRADE,
    Who,
    World,
    among,
    hiding_place,
    new_thing,
    number,
    one_of,
    person,
    somewhere,
    the_thing,
)

SPEECH = point(*((text, weight, "") for text, weight, _ in among(words.SPEECH)))
WISHES = one_of(
    words.listed("""need want found lost dreamed_of never_liked would_love can_see remember cannot_find made_you
    was_looking_for know_who_has must_buy broke saw""")
)
PLANS = one_of(words.listed("should must could will can have_to are_going_to ought_to want_to used_to never might"))
WONDERS = one_of(words.listed("see hear_about bring want lose sell forget like expect notice ask_for hide"))
LINES_BEGIN = (
    ("I", 12, "wish"),
    ("We", 8, "plan"),
    ("Please", 6, "plead"),
    ("My", 7, "family"),
    ("There is", 7, "animal"),
    ("You look", 6, "look"),
    ("Try the", 6, "food"),
    ("Did you", 6, "wonder"),
)
EXCLAIM = tuple((f"{text}!", weight, "exclaim") for text, weight, _ in among(words.EXCLAMATIONS, lead=""))
QUESTIONS = (("Where is the", 7, "where"), ("How many", 7, "how many"), ("Who has the", 7, "who"))


def dialogue(w: World, _: object = None) -> Program:
    """Write a line of speech after its opening quotation mark, and who said it; a question gets its true answer."""
    choice = yield point(*LINES_BEGIN, *EXCLAIM, *(QUESTIONS[:2] if w.hidden else QUESTIONS))
    if choice == "exclaim":
        yield literal(" ")
        choice = yield point(*LINES_BEGIN)
    yield from LINES[choice](w)


def said(w: World) -> Program:
    """Write who said it, and how."""
    yield SPEECH
    speaker = yield point(*((f" {who.name}", 1, who) for who in w.people))
    w.focus = speaker
    manner = yield point(
        (".", 50, "."), (" to the", 12, "to"), *((t, wt, "") for t, wt, _ in among(words.ADVERBS[2:8]))
    )
    if manner == "to":
        yield TRADE
    if manner != ".":
        yield literal(".")


def wish(w: World) -> Program:
    """Say something about a thing."""
    yield WISHES
    yield from new_thing()
    near = yield point((',"', 2, False), (" near the", 1, True))
    if near:
        yield PLACE
        yield literal(',"')
    yield from said(w)


def plan(w: World) -> Program:
    """Say what we should do."""
    yield PLANS
    kind = yield BASE
    yield from plain_objects(kind)
    yield literal(',"')
    yield from said(w)


def plead(w: World) -> Program:
    """Ask for something to be done."""
    kind = yield BASE
    yield from plain_objects(kind)
    yield point(('!"', 1, ""), (',"', 2, ""))
    yield from said(w)


def family(w: World) -> Program:
    """Say what a relative did."""
    yield RELATIVE
    kind = yield PAST
    yield from plain_objects(kind)
    yield literal(',"')
    yield from said(w)


def animal(w: World) -> Program:
    """Say that there is an animal."""
    yield ANIMAL_LOOK
    yield ANIMAL
    yield from somewhere()
    yield point(('!"', 1, ""), (',"', 2, ""))
    yield from said(w)


def look(w: World) -> Program:
    """Say how somebody looks."""
    yield FEELING
    more = yield point((" and", 1, True), (" today", 1, False))
    if more:
        yield FEELING
    yield literal(',"')
    yield from said(w)


def food(w: World) -> Program:
    """Recommend some food."""
    yield FOOD_LOOK
    yield FOOD
    yield point((',"', 2, ""), ('!"', 1, ""))
    yield from said(w)


def wonder(w: World) -> Program:
    """Ask something that is not answered."""
    yield WONDERS
    yield from new_thing()
    yield from somewhere()
    yield literal('?"')
    yield from said(w)


def asked(w: World) -> Program:
    """Write who asked, and return the other one, who answers."""
    yield literal('?" asked')
    speaker = yield point(*((f" {who.name}", 1, who) for who in w.people))
    return w.other(speaker)


def answered(w: World, who: Who) -> Program:
    """Write who answered: the one who did not ask."""
    yield literal(',"')
    yield SPEECH
    yield person(w, who, "speaker")
    yield literal(".")
    w.focus = who


def where(w: World) -> Program:
    """Ask where the story's thing is; the answer is where it was hidden, or who has it."""
    yield from the_thing(w)
    who = yield from asked(w)
    if w.hidden:
        yield literal('. "It is')
        yield from hiding_place(w)
    else:
        yield from held(w, who)
    yield from answered(w, who)


def held(w: World, who: Who) -> Program:
    """Say who has the story's thing, as `who` would."""
    if w.owner is who:
        yield literal('. "I have it')
    else:
        yield literal('. "')
        yield determined("owner", w.owner.name, tuple(somebody.name for somebody in w.people))
        yield literal(" has it")


def who_has(w: World) -> Program:
    """Ask who has the story's thing."""
    yield from the_thing(w)
    who = yield from asked(w)
    yield from held(w, who)
    yield from answered(w, who)


def how_many(w: World) -> Program:
    """Ask how many of the counted things there are."""
    yield literal(f" {w.counted[1]} are there")
    who = yield from asked(w)
    yield literal('. "There is' if w.count == 1 else '. "There are')
    yield number(w, "count")
    yield from answered(w, who)


LINES = {
    "wish": wish,
    "plan": plan,
    "plead": plead,
    "family": family,
    "animal": animal,
    "look": look,
    "food": food,
    "wonder": wonder,
    "where": where,
    "who": who_has,
    "how many": how_many,
}
