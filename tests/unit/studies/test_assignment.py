"""Who gets which arm, whatever the order in which people come and drop out."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.studies.assignment import Slot, next_slot, replayed, wave_seed
from app.studies.stimuli import PlanPlace
from tests.waves import changed, loaded_study

SEED = "1/study/main"
STRATA = ("desktop", "tablet", "phone")


class Door:
    """A wave as far as its slots go: people come into strata and drop out; `issued` are all slots ever given out."""

    def __init__(self, arms: int, places: int, seed: str = SEED) -> None:
        self.arms, self.places, self.seed = arms, places, seed
        self.held: dict[int, Slot] = {}
        self.issued: dict[tuple[str, int], Slot] = {}
        self.people = 0

    def come(self, stratum: str) -> Slot | None:
        slot = next_slot(self.seed, self.arms, self.places, stratum, self.held.values())
        if slot is not None:
            self.people += 1
            self.held[self.people] = slot
            self.issued[slot.stratum, slot.number] = slot
        return slot

    def leave(self, which: int) -> int | None:
        """Somebody drops out; who it is."""
        if not self.held:
            return None
        person = sorted(self.held)[which % len(self.held)]
        del self.held[person]
        return person

    def freed(self, stratum: str) -> set[int]:
        """The slots of a stratum that wait for another person."""
        held = {(slot.stratum, slot.number) for slot in self.held.values()}
        return {number for (of, number) in self.issued if of == stratum and (of, number) not in held}

    def largest(self) -> int:
        """How many people the arm has that has most."""
        return max(Counter(slot.arm for slot in self.held.values()).values(), default=0)

    def spread(self, slots: Any) -> int:
        """By how much the arms differ."""
        sizes = Counter(slot.arm for slot in slots)
        return max(sizes[arm] for arm in range(self.arms)) - min(sizes[arm] for arm in range(self.arms))


ARMS = st.integers(1, 7)
MOVES = st.lists(st.one_of(st.sampled_from(STRATA), st.integers(0, 1000)), max_size=120)


@given(ARMS, st.integers(1, 60), MOVES)
def test_arms_differ_by_one_at_most_in_a_stratum_whose_slots_are_given_out_again(
    arms: int, places: int, moves: list[str | int]
) -> None:
    """A slot that is free again counts as given out: the next person takes it."""
    door = Door(arms, places)
    for move in moves:
        if isinstance(move, str):
            door.come("all")
        else:
            door.leave(move)
        assert door.spread(door.issued.values()) <= 1
        assert len({(slot.stratum, slot.number) for slot in door.held.values()}) == len(door.held)


@given(ARMS, st.integers(1, 60), MOVES)
def test_a_wave_that_is_full_has_equal_arms_in_whatever_strata_people_came(
    arms: int, places: int, moves: list[str | int]
) -> None:
    door = Door(arms, places)
    for move in moves:
        if isinstance(move, str):
            door.come(move)
        else:
            door.leave(move)
    last = 0
    while door.come(STRATA[last % 3]) is not None:
        last += 1
    sizes = Counter(slot.arm for slot in door.held.values())
    assert sum(sizes.values()) == places
    assert sorted(sizes[arm] for arm in range(arms)) == sorted(
        places // arms + (at < places % arms) for at in range(arms)
    )


@given(ARMS, st.lists(st.sampled_from(STRATA), max_size=60))
def test_without_drop_outs_each_run_of_slots_has_each_arm_once(arms: int, people: list[str]) -> None:
    door = Door(arms, 10_000)
    for stratum in people:
        door.come(stratum)
    for stratum in STRATA:
        given_out = [slot for slot in door.held.values() if slot.stratum == stratum]
        assert [slot.number for slot in given_out] == list(range(len(given_out)))
        for at in range(0, len(given_out), arms):
            block = [slot.arm for slot in given_out[at : at + arms]]
            assert len(set(block)) == len(block)


@given(st.integers(1, 60), MOVES)
def test_slots_given_out_differ_by_one_an_arm_in_each_stratum_and_the_lowest_freed_one_is_next(
    places: int, moves: list[str | int]
) -> None:
    """In a stratum of its own always; with others beside it, until an arm has its share of the places."""
    design = changed(loaded_study(), plan={"assign": {"seed": 3, "replace": "drop-outs"}}).design
    arms = 4
    for strata in (STRATA, STRATA[:1]):
        door = Door(arms, places, wave_seed(design, "main"))
        log: list[tuple[int | None, str, dict[str, Any]]] = []
        shares_left = True
        for move in moves:
            if not isinstance(move, str):
                if (left := door.leave(move)) is not None:
                    log.append((left, "ending", {"ending": "withdrawn"}))
                continue
            stratum = move if move in strata else strata[0]
            freed = door.freed(stratum)
            slot = door.come(stratum)
            if slot is None:
                assert len(door.held) == places
                continue
            log.append((door.people, "assignment", {"stratum": stratum, "slot": slot.number, "arm": slot.arm}))
            shares_left = shares_left and door.largest() < places // arms
            if shares_left or len(strata) == 1:
                given_out = [each for each in door.issued.values() if each.stratum == stratum]
                assert door.spread(given_out) <= 1
                assert sorted(each.number for each in given_out) == list(range(len(given_out)))
                assert not freed or slot.number == min(freed)
        assert all(each.agrees for each in replayed(design, "main", places, log))


def test_with_several_strata_an_arm_that_has_its_share_of_the_places_is_given_out_nowhere_any_more() -> None:
    """So strata end up unequal where places run out: what is equal then is the whole wave."""
    door = Door(2, 6)
    first = {
        stratum: slot for stratum in map(str, range(60)) if (slot := next_slot(SEED, 2, 6, stratum, ())) is not None
    }
    alike = [stratum for stratum, slot in first.items() if slot.arm == 0][:3]
    for stratum in alike:
        door.come(stratum)
    others = [door.come(alike[0]) for _ in range(3)]
    assert [slot and slot.arm for slot in others] == [1, 1, 1]
    assert door.come(alike[0]) is None
    assert door.spread(door.held.values()) == 0


def test_the_order_follows_from_the_seed_and_differs_between_waves_and_strata() -> None:
    def order(seed: str, stratum: str) -> list[int]:
        held: list[Slot] = []
        for _ in range(24):
            found = next_slot(seed, 4, 96, stratum, held)
            assert found is not None
            held.append(found)
        return [slot.arm for slot in held]

    design = loaded_study().design
    seeds = [wave_seed(design, name) for name in ("main", "pilot")]
    assert order(seeds[0], "desktop") == order(seeds[0], "desktop")
    assert len({tuple(order(seed, stratum)) for seed in seeds for stratum in STRATA}) == 6


def test_a_log_is_drawn_again_and_a_changed_one_is_found() -> None:
    design = changed(loaded_study(), plan={"assign": {"seed": 3, "replace": "drop-outs"}}).design
    seed, held, log = wave_seed(design, "main"), {}, []
    for person in range(1, 20):
        slot = next_slot(seed, 4, 20, "desktop", held.values())
        assert slot is not None
        held[person] = slot
        log.append((person, "assignment", {"stratum": "desktop", "slot": slot.number, "arm": slot.arm}))
        if person % 3 == 0:
            del held[person - 1]
            log.append((person - 1, "ending", {"ending": "withdrawn"}))
        if person % 5 == 0:
            log.append((person, "ending", {"ending": "completed"}))
    assert all(each.agrees for each in replayed(design, "main", 20, log))
    person, kind, body = log[4]
    log[4] = person, kind, {**body, "arm": (body["arm"] + 1) % 4} if kind == "assignment" else {"ending": "completed"}
    assert not all(each.agrees for each in replayed(design, "main", 20, log))
    assert PlanPlace(0, "", 0, seed).seed == "3/two-models/main"
