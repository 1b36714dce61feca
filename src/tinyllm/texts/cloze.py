"""Multiple choice from the stories: which word does the story so far ask for?

An item is a story cut before a word that the earlier text determines (a pronoun's or verb's agreement, the adjective,
noun, place or number of something named before, a name), the word itself, and one to three words of the same form.
The stories are of a stream of their own, one item from each.
"""

from functools import lru_cache
from typing import TypedDict

from tinyllm.rng import PCG32, stream
from tinyllm.texts.choice import ChoicePoint, derivation
from tinyllm.texts.stories import KEY, story

N_ITEMS = 400
MIN_CONTEXT_BYTES, MAX_CONTEXT_BYTES = 100, 600
MAX_FOILS = 3


class ClozeItem(TypedDict):
    """One row of the task's file."""

    id: str
    context: str
    choices: list[str]
    answer: int


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


def _foils(context: bytes, word: ChoicePoint, rng: PCG32) -> list[bytes]:
    """Return up to three wrong words, first those that the context mentions too, each group in random order."""
    shuffled = [word.foils[i] for i in rng.shuffled(len(word.foils))]
    mentioned = [foil for foil in shuffled if foil in context]
    return (mentioned + [foil for foil in shuffled if foil not in mentioned])[:MAX_FOILS]


@lru_cache
def cloze_items() -> tuple[ClozeItem, ...]:
    """Return the items, the kinds of determined words as even as the stories allow, the answers' places too.

    Returns
    -------
    tuple of dict
        `id` ("place-003"), `context`, `choices` (2 to 4), `answer` (index of the true one).
    """
    texts, rng = stream(KEY, "stories/cloze"), stream(KEY, "stories/cloze/choices")
    made: dict[str, int] = {}
    placed: dict[int, int] = {}
    items: list[ClozeItem] = []
    while len(items) < N_ITEMS:
        sites = _sites(texts)
        if not sites:
            continue
        rarest = min((word.kind for _, word in sites), key=lambda kind: (made.get(kind, 0), kind))
        fitting = [site for site in sites if site[1].kind == rarest]
        context, word = fitting[rng.bounded(len(fitting))]
        choices = _foils(context, word, rng)
        size = len(choices) + 1
        placed[size] = answer = (placed.get(size, -1) + 1) % size
        choices.insert(answer, word.texts[0])
        number = made[rarest] = made.get(rarest, 0) + 1
        items.append(
            {
                "id": f"{rarest}-{number:03d}",
                "context": context.decode("ascii"),
                "choices": [choice.decode("ascii") for choice in choices],
                "answer": answer,
            }
        )
    return tuple(items)
