"""The stimuli of a person: the piece of material of each match, the seat, and which seat begins. Pure.

Persons of an arm are numbered, in each stratum, by their slots: a person who takes over a drop-out's slot plays the
same. From one number to the next the pieces shift by one condition, so that after as many persons as there are pieces
each condition was played on each piece. Sides and starts are mirrored in all four ways from person to person.
"""

import random
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from app.games import find_game
from app.studies.arms import Condition, PlannedArm, arms, between, shuffled
from app.studies.checks import ROLE
from app.studies.design import StudyDesign

FIRST = "first"  # the game setting that says which seat begins
_COMBINATIONS = ((0, 0), (1, 1), (0, 1), (1, 0))  # the person's seat, and the seat that begins


class PlanPlace(NamedTuple):
    """The position of a plan: the index of the arm in the design, the stratum, and the person's number in both.

    `seed` is the seed of the wave.
    """

    arm: int
    stratum: str
    number: int
    seed: str


class PlannedMatch(NamedTuple):
    """A match that counts: `piece` is an index into the version's material, `first` is None if the game decides it."""

    block: int
    condition: Condition
    piece: int | None
    seat: int
    first: int | None


def plan_of(design: StudyDesign, pieces: Sequence[int], place: PlanPlace) -> dict[str, Any]:
    """The plan of a person, as stored in an enrolment. `pieces` are the indices of pieces that differ from each
    other.
    """
    every = arms(design)
    group, among = _group(design, every, place.arm)
    arm = shuffled(every[place.arm], design, _rng(place, group, "order", place.number))
    # A condition that is played several times occupies several places.
    cells = _cell_of_each_match(design, arm)
    drawn, spare = _drawn_and_spare_pieces(design, pieces, place, group, among, len(cells))
    sides = _sides(design, place, group, among, len(cells))
    roles = tuple(dict.fromkeys(find_game(design.game).roles))
    matches = []
    flat = [(at, condition) for at, block in enumerate(arm.blocks) for condition in block]
    for cell, (block, condition) in zip(cells, flat, strict=True):
        seat, first = sides[cell]
        if ROLE in condition:
            seat = roles.index(str(design.levels(ROLE)[condition[ROLE]]))
        matches.append(PlannedMatch(block, dict(condition), drawn[cell] if pieces else None, seat, first)._asdict())
    count = design.plan.practice.matches if design.plan.practice else 0
    practice = [{"piece": spare[at] if at < len(spare) else None, "seat": matches[0]["seat"]} for at in range(count)]
    return {"matches": matches, "practice": practice}


def _rng(place: PlanPlace, *parts: object) -> random.Random:
    return random.Random("/".join(map(str, (place.seed, place.stratum, *parts))))


def _group(design: StudyDesign, every: Sequence[PlannedArm], at: int) -> tuple[str, int]:
    """The group of persons whose draws an arm shares, and the arm's index in its group.

    Groups that are yoked to another one draw like it: what its persons played is played again, in the same order.
    """
    factors = between(design)
    groups: dict[str, list[int]] = {}
    for number, arm in enumerate(every):
        condition = arm.conditions[0]
        groups.setdefault("/".join(condition[factor] for factor in factors), []).append(number)
    name, members = next((name, members) for name, members in groups.items() if at in members)
    if design.material is None or design.material.yoked_to is None:
        return name, members.index(at)
    source = design.material.yoked_to
    yoking = next(each for each in factors if source in design.levels(each))
    own = every[at].conditions[0]
    return "/".join(source if each == yoking else own[each] for each in factors), members.index(at)


def _cell_of_each_match(design: StudyDesign, arm: PlannedArm) -> list[int]:
    """The index of each match's condition, the same in all orders of a group."""
    flat = [tuple(condition[factor] for factor in design.plan.within) for condition in arm.conditions]
    places = {each: at for at, each in enumerate(sorted(set(flat)))}
    seen: dict[tuple[str, ...], int] = {}
    cells = []
    for each in flat:
        cells.append(places[each] + len(places) * seen.get(each, 0))
        seen[each] = seen.get(each, 0) + 1
    return cells


def _drawn_and_spare_pieces(
    design: StudyDesign, pieces: Sequence[int], place: PlanPlace, group: str, among: int, count: int
) -> tuple[list[int], list[int]]:
    """The piece of each cell, and those that a person does not play."""
    if not pieces or design.material is None:
        return [], []
    if design.material.rotate_over == "nothing":
        order = _rng(place, group, "pieces", among, place.number).sample(pieces, len(pieces))
        return order[:count], order[count:]
    cycle, turn = divmod(place.number, len(pieces))
    order = _rng(place, group, "pieces", cycle).sample(pieces, len(pieces))
    start = turn + among
    rotated = [order[(start + at) % len(order)] for at in range(len(order))]
    return rotated[:count], rotated[count:]


def _sides(design: StudyDesign, place: PlanPlace, group: str, among: int, count: int) -> list[tuple[int, int | None]]:
    """The seat for each cell, and the seat that begins if the design leaves it open.

    Four persons share a draw that is balanced over the matches of each, and each mirrors it in another way, so that
    together they have met all four combinations in each cell.
    """
    four, mirror = divmod(place.number, len(_COMBINATIONS))
    draw = _rng(place, group, "sides", among, four)
    rest = count % len(_COMBINATIONS)
    last = draw.choice((_COMBINATIONS[:2], _COMBINATIONS[2:]))
    combinations = [*_COMBINATIONS] * (count // len(_COMBINATIONS))
    combinations += draw.sample(_COMBINATIONS, rest) if rest != len(last) else last
    draw.shuffle(combinations)
    seat_mirror, first_mirror = _COMBINATIONS[mirror]
    chance = _rng(place, group, "chance", among, place.number)
    material = design.material
    found = []
    for seat, first in combinations:
        drawn = chance.randrange(2), chance.randrange(2)
        seat = seat ^ seat_mirror if material is None or material.sides == "balanced" else drawn[0]
        first = first ^ first_mirror if material is None or material.starts == "balanced" else drawn[1]
        found.append((seat, first if _start_is_open(design) else None))
    return found


def _start_is_open(design: StudyDesign) -> bool:
    """Whether the game has a setting for which seat begins, and the design leaves it open."""
    game = find_game(design.game)
    return FIRST in game.fields and FIRST not in design.conditions and FIRST not in design.same_for_all.game


def distinct(keys: Iterable[Any]) -> list[int]:
    """The indices of the keys that differ from all earlier ones."""
    found: dict[Any, int] = {}
    for at, key in enumerate(keys):
        found.setdefault(key, at)
    return list(found.values())
