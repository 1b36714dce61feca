"""Multiple choice from the stories: which word does the story so far ask for?

An item is a story cut before a word that the earlier text determines (a pronoun's or verb's agreement, the adjective,
noun, place or number of something named before, a name), the word itself, and one to three words of the same form.
The stories are of a stream of their own, one item from each.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypedDict

from tinyllm.rng import PCG32, stream
from tinyllm.texts.choice import ChoicePoint, derivation
from tinyllm.texts.stories import KEY, story

N_DRAWN = 400
MIN_CONTEXT_BYTES, MAX_CONTEXT_BYTES = 100, 600
MAX_FOILS = 3
BALANCED = ("agreement", "possessive")  # kinds that ask for one of two or three words


class ClozeItem(TypedDict):
    """One row of the task's file."""

    id: str
    context: str
    choices: list[str]
    answer: int


@dataclass(frozen=True)
class Drawn:
    """A word to ask for: what determines it, the story before it, the word, and what could wrongly stand there."""

    kind: str
    context: bytes
    true: bytes
    foils: tuple[bytes, ...]


Site = tuple[bytes, ChoicePoint]  # the story before the word, and the word with its foils


def _sites(rng: PCG32) -> list[Site]:
    """Return the places of one new story whose word is determined and whose context has a fit length."""
    written = bytearray()
    sites: list[Site] = []
    for current, index in derivation(story(), rng):
        if current.foils and MIN_CONTEXT_BYTES <= len(written) <= MAX_CONTEXT_BYTES:
            sites.append((bytes(written), current))
        written += current.texts[index]
    return sites


def _foils(context: bytes, word: ChoicePoint, rng: PCG32) -> tuple[bytes, ...]:
    """Return up to three wrong words, first those that the context mentions too, each group in random order."""
    shuffled = [word.foils[i] for i in rng.shuffled(len(word.foils))]
    mentioned = [foil for foil in shuffled if foil in context]
    return tuple((mentioned + [foil for foil in shuffled if foil not in mentioned])[:MAX_FOILS])


@lru_cache
def drawn() -> tuple[Drawn, ...]:
    """Return `N_DRAWN` words to ask for, one of each story, their kinds as even as the stories allow."""
    texts, rng = stream(KEY, "stories/cloze"), stream(KEY, "stories/cloze/choices")
    made: Counter[str] = Counter()
    words: list[Drawn] = []
    while len(words) < N_DRAWN:
        sites = _sites(texts)
        if not sites:
            continue
        rarest = min((word.kind for _, word in sites), key=lambda kind: (made[kind], kind))
        fitting = [site for site in sites if site[1].kind == rarest]
        context, word = fitting[rng.bounded(len(fitting))]
        words.append(Drawn(rarest, context, word.texts[0], _foils(context, word, rng)))
        made[rarest] += 1
    return tuple(words)


def _balanced(words: Iterable[Drawn]) -> Iterator[Drawn]:
    """Yield the words without the surplus of "was" over "were" or of "his" over "their": else guessing would pay."""
    words = list(words)
    answers = Counter((word.kind, word.true) for word in words if word.kind in BALANCED)
    fewest = {kind: min(n for (k, _), n in answers.items() if k == kind) for kind in BALANCED}
    kept: Counter[tuple[str, bytes]] = Counter()
    for word in words:
        kept[word.kind, word.true] += 1
        if word.kind not in BALANCED or kept[word.kind, word.true] <= fewest[word.kind]:
            yield word


@lru_cache
def cloze_items() -> tuple[ClozeItem, ...]:
    """Return the items, with the answers at every place equally often.

    Returns
    -------
    tuple of dict
        `id` ("place-003"), `context`, `choices` (2 to 4), `answer` (index of the true one).
    """
    made: Counter[str] = Counter()
    placed: Counter[int] = Counter()
    items: list[ClozeItem] = []
    for word in _balanced(drawn()):
        choices = list(word.foils)
        size = len(choices) + 1
        answer = placed[size] % size
        choices.insert(answer, word.true)
        placed[size] += 1
        made[word.kind] += 1
        items.append(
            {
                "id": f"{word.kind}-{made[word.kind]:03d}",
                "context": word.context.decode("ascii"),
                "choices": [choice.decode("ascii") for choice in choices],
                "answer": answer,
            }
        )
    return tuple(items)
