"""What a story knows: who is in it, what they own, how many, where, when; and the phrases that name those things."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tinyllm.texts import vocabulary as words
from tinyllm.texts.choice import Alternative, ChoicePoint, Program, determined, literal, point


@dataclass(frozen=True, eq=False)
class Who:
    """A person, or the pair of friends, with the pronouns that stand for them."""

    name: str
    they: str
    them: str
    their: str
    themself: str

    @property
    def was(self) -> str:
        """The past copula that agrees with the name."""
        return "were" if self is PAIR else "was"

    @property
    def they_was(self) -> str:
        """The past copula that agrees with the pronoun: a name was, but they were."""
        return "were" if self.they == "they" else "was"


SHE, HE, THEY = ("she", "her", "her", "herself"), ("he", "him", "his", "himself"), ("they", "them", "their", "themself")
EVERYBODY = tuple(
    Who(name, *pronouns)
    for names, pronouns in ((words.SHE_NAMES, SHE), (words.HE_NAMES, HE), (words.THEY_NAMES, THEY))
    for name in names
)
PAIR = Who("the two friends", "they", "them", "their", "themselves")


@dataclass
class World:
    """The state of one story; sentences read it and change it."""

    people: list[Who] = field(default_factory=list)  # the hero, then the friend
    trade: str = ""  # the hero's
    adjective: str = ""
    thing: str = ""
    owner: Who = PAIR
    hidden: tuple[str, str] | None = None  # where the thing was hidden: ("behind", "mill")
    count: int = 0
    counted: tuple[str, str] = ("", "")
    container: str = ""
    weather: str = ""
    hour: int = -1
    focus: Who = PAIR  # whom a pronoun at the start of a sentence means
    paragraphs: int = 0

    @property
    def hero(self) -> Who:
        """The one the story is about."""
        return self.people[0]

    def other(self, who: Who) -> Who:
        """The friend of the hero, or the hero for anybody else."""
        return self.people[1] if who is self.people[0] else self.people[0]


def among(choices: Sequence[str], *, tag: str = "", scale: int = 1, lead: str = " ") -> tuple[Alternative, ...]:
    """Return weighted alternatives, early words likelier (4 to 1, times `scale`); values are (tag, index) or words."""
    n = len(choices)
    return tuple(
        (lead + word, scale * (1 + 3 * (n - i) // n), (tag, i) if tag else word) for i, word in enumerate(choices)
    )


def one_of(choices: Sequence[str], *, lead: str = " ") -> ChoicePoint:
    """Return the choice point of a word list; the value is the word."""
    return point(*among(choices, lead=lead))


def with_article(choices: Sequence[str]) -> ChoicePoint:
    """Return the choice point "a red" | "an old" …; the value is the word without its article."""
    rows = among(choices)
    return point(*((f" {article(word)} {word}", weight, word) for (_, weight, word) in rows))


def article(word: str) -> str:
    """Return "a" or "an", as the word's sound asks."""
    return "an" if word[0] in "aeiou" or word.startswith(("honest", "hour")) else "a"


PLACE = one_of(words.PLACES)
THING = one_of(words.THINGS)
FOOD = one_of(words.FOODS)
FOOD_LOOK = one_of(words.FOOD_ADJECTIVES)
ANIMAL = one_of(words.ANIMALS)
ANIMAL_LOOK = with_article(words.ANIMAL_ADJECTIVES)
FEELING = one_of(words.FEELINGS)
QUALITY = with_article(words.QUALITIES)
VILLAGE = one_of(words.VILLAGES)
TRADE = one_of(words.TRADES)
RELATIVE = one_of(words.RELATIVES)
NEAR = one_of(words.NEARNESS)
LOOK = with_article(words.ADJECTIVES)
A_THING = with_article(words.THINGS)
CONTAINER = one_of(words.CONTAINERS)
HIDING = one_of(words.HIDING)
LOOK_ROWS = tuple(zip((text.decode() for text in LOOK.texts), LOOK.weights, LOOK.values, strict=True))


def spaced(choices: Sequence[str]) -> tuple[str, ...]:
    """Return the words with a space before each: what stands in a determined word's place."""
    return tuple(f" {word}" for word in choices)


ADJECTIVE_FOILS, THING_FOILS, PLACE_FOILS = spaced(words.ADJECTIVES), spaced(words.THINGS), spaced(words.PLACES)
NUMBER_FOILS, TRADE_FOILS = spaced(words.NUMBERS), spaced(words.TRADES)
CONTAINER_FOILS, HIDING_FOILS = spaced(words.CONTAINERS), spaced(words.HIDING)


def their(who: Who) -> ChoicePoint:
    """Return the possessive of a subject, which earlier text determines."""
    return determined("possessive", f" {who.their}", (" her", " his", " their"))


def themself(who: Who) -> ChoicePoint:
    """Return the reflexive of a subject, which earlier text determines."""
    return determined("reflexive", f" {who.themself}", (" herself", " himself", " themself", " themselves"))


def was(copula: str) -> ChoicePoint:
    """Return the copula after a subject, which earlier text determines."""
    return determined("agreement", f" {copula}", (" was", " were"))


def person(w: World, who: Who, kind: str) -> ChoicePoint:
    """Return the name of one of the story's two people where earlier text says which."""
    return determined(kind, f" {who.name}", tuple(f" {somebody.name}" for somebody in w.people))


def number(w: World, kind: str) -> ChoicePoint:
    """Return the count as a word, which earlier text determines ("count"), by a sum perhaps ("sum")."""
    near = tuple(f for i, f in enumerate(NUMBER_FOILS) if i and abs(i - w.count) <= 2)
    return determined(kind, f" {words.NUMBERS[w.count]}", near)


def many(w: World) -> str:
    """Return the counted noun in the number that agrees with the count."""
    return w.counted[0] if w.count == 1 else w.counted[1]


def the_thing(w: World) -> Program:
    """Write " red kite": the adjective and the noun of the story's thing."""
    yield determined("adjective", f" {w.adjective}", ADJECTIVE_FOILS)
    yield determined("thing", f" {w.thing}", THING_FOILS)


def new_thing() -> Program:
    """Write " an old lantern": some thing that the story does not follow."""
    yield LOOK
    yield THING


def somewhere() -> Program:
    """Write " behind the mill": some place that the story does not follow."""
    yield NEAR
    yield literal(" the")
    yield PLACE


def the_counted(w: World) -> Program:
    """Write " three apples", the number agreeing with what has happened to them."""
    yield number(w, "count")
    yield literal(f" {many(w)}")


def hiding_place(w: World) -> Program:
    """Write " behind the mill": where the story's thing was hidden."""
    preposition, place = w.hidden or ("", "")
    yield determined("hiding", f" {preposition}", HIDING_FOILS)
    yield literal(" the")
    yield determined("place", f" {place}", PLACE_FOILS)
