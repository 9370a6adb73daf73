"""Fields shared by datasets and campaigns: which of the kept seats give rows, and the weights of their moves. Pure."""

from collections.abc import Mapping
from typing import Any, Literal

from app.core.errors import Invalid, Phrase
from app.datasets.filters import ABOVE_AVG, ABOVE_AVG_NONZERO, ALL, NO_CONTROL, NONZERO, RANDOM_ROWS, SHUFFLED_REWARDS
from app.games.rewards import NO_REWARDS
from app.jobs.spec import spec_field

MOST_WEIGHT = 100.0
MOST_PERMUTATIONS = 5  # of three item types, beside the order in which they were played
FilterName = Literal["above_avg", "above_avg_nonzero", "nonzero", "all"]
FILTER_LABELS: Mapping[str, str] = {
    ABOVE_AVG: "above the mean score",
    ABOVE_AVG_NONZERO: "above the mean of the scores above 0",
    NONZERO: "scores above 0",
    ALL: "all transcripts",
}
OF_ROWS: Mapping[str, Any] = {
    "grounded": False,
    "control": NO_CONTROL,
    "message_weight": 1.0,
    "proposal_weight": 1.0,
    "permutations": 0,
}


def grounded_field() -> Any:
    """The field for keeping only seats whose proposal is grounded in the talk."""
    return spec_field(
        "Grounded only",
        "Of the seats that the filter keeps, only those whose proposal is their share of the last split named in the"
        " talk.",
        False,
    )


def control_field() -> Any:
    """The field for a control: the same experiment without the part that is thought to help."""
    return spec_field(
        "Control",
        "For comparison: as many rows as the filter keeps of each round, but from any seats; or rewards dealt out at "
        "random among the seats of a role.",
        NO_CONTROL,
        labels={
            NO_CONTROL: "none",
            RANDOM_ROWS: "as many rows, drawn at random",
            SHUFFLED_REWARDS: "rewards exchanged at random",
        },
        metavar="NAME",
    )


def weight_field(what: str, more: str) -> Any:
    """The field for the weight of some moves in the loss."""
    return spec_field(f"Weight of {what}", f"In the loss. {more}", 1.0, metavar="W", ge=0, le=MOST_WEIGHT)


def permutations_field() -> Any:
    """The field for the number of other orders of the item types in which each kept transcript is added."""
    return spec_field(
        "Other orders of the item types",
        "Adds each kept transcript in so many other orders, as if books had been hats: counts, values and words. Orders"
        " that would be held-out material are left out.",
        0,
        metavar="N",
        ge=0,
        le=MOST_PERMUTATIONS,
    )


def is_drawn(fields: Mapping[str, Any]) -> bool:
    """Whether anything in a dataset with these fields is drawn by a seed; missing fields have their defaults."""
    drawn = {"wordings": None, "control": NO_CONTROL, "permutations": 0}
    return any(fields.get(name, usual) != usual for name, usual in drawn.items())


def check_control(control: str, rewards: str, filter_name: str, *, grounded: bool) -> None:
    """Raises Invalid for a control that shuffles rewards if there are none, or that draws rows if all are kept."""
    if control == RANDOM_ROWS and filter_name == ALL and not grounded:
        raise Invalid("control", expected=Phrase("a filter that leaves seats out"), got=Phrase("one that keeps all"))
    if control == SHUFFLED_REWARDS and rewards == NO_REWARDS:
        raise Invalid("control", expected=Phrase("rewards beside it"), got=Phrase("none"))
