"""What Parlor's API takes and gives. Written by `python -m scripts.client_types` from the description of the API."""

from pathlib import Path
from typing import Any, Literal, Required, TypedDict


class JobBudget(TypedDict, total=False):
    """The limits on a job's model calls."""

    usd: float | None  # Budget, USD
    tokens: int | None  # Budget, tokens


class RoundSampling(TypedDict, total=False):
    """The prompting and sampling options of a round, which override each model’s own."""

    temperature: float | None  # 0, which is greedy, to 2.
    top_k: int | None  # Sample from the likeliest tokens, where the server can.
    max_tokens: int | None  # Longer output is cut off.
    greedy: bool  # The same as a temperature of 0.
    for_training: bool  # For training
    structured: bool  # Moves as JSON


class TrainingBudget(TypedDict, total=False):
    """The budget of a training at a vendor. A local training calls nobody."""

    usd: float | None  # Budget, USD
    tokens: int | None  # The same for trained tokens of all epochs, regardless of cost.


class CampaignSampling(TypedDict, total=False):
    """How the models of a campaign are sampled in rounds and evaluations; overrides each model's own options."""

    temperature: float | Literal["none"] | None  # 0 (greedy) to 2, for playing and evaluating; none: the model’s own.
    top_k: int | Literal["none"] | None  # Sample from the likeliest tokens, where the server can; none: from all.
    max_tokens: int | Literal["none"] | None  # Longer output is cut off.


class SocietySettings(TypedDict, total=False):
    """The settings of a society. Models, questions, memories and the embedder belong to the job instead."""

    size: int  # Agents on each side of the square grid.
    iterations: int  # Questions that each agent is asked, one after another.
    setting: Literal["all_good", "all_bad", "half_half", "mixed_half_half"]  # Setting
    radius: float | None  # How far away, by Euclidean distance on the grid, a neighbour may be.
    critics: int  # Maximum number of agents rating each draft.
    global_interaction: bool  # Whether some of the critics come from anywhere.
    dropout: float  # Share of the neighbours that are left out where some critics come from anywhere.
    score_only: bool  # Whether revisions see the mean rating and no reasons.
    recall: bool  # Whether a similar question from memory, with its answer, is shown.
    threshold: float | None  # Cosine distance up to which a remembered question counts as similar.
    first_memories: int  # Questions and answers that each agent remembers at the start.
    temperature: float  # For every call.
    max_tokens: int  # Maximum tokens per call.
    preset: Literal["published", "published-single-thread"]  # Published settings, which the other fields override.


class AnswerSampling(TypedDict, total=False):
    """How two models answer held-out questions."""

    temperature: float | None  # 0 to 2.
    top_p: float | None  # 0 to 1.
    top_k: int | None  # Local models only.
    max_tokens: int | None  # Longer output is cut off.
    no_repeat_ngram: int | None  # Local models only. 2: no pair of tokens is written twice.
    preset: Literal["published"]  # Published settings, which the other fields override.


class TextFile(TypedDict, total=False):
    """A file, by its text; a Path of this machine is read into one."""

    text: Required[str]  # What the file holds.
    name: str  # What errors and pages call it.


class RoundSpec(TypedDict, total=False):
    """Who plays which game, how often and with what setup. A cross-play has a round for each pair of models."""

    game: Required[str]  # Its name.
    cross_play: bool  # A round for each pair of any number of models, all on the same seeds. Each plays itself, too.
    models: Required[list[str]]  # Models
    swap_seats: bool  # Each game is played twice, with the models’ seats swapped. The number of matches has to be even.
    matches: int | None  # Per pair.
    config: dict[str, Any]  # Such as objective=coop.
    lenient: bool  # Lenient reading of moves
    material: TextFile | Path | Literal["all"] | None  # Material
    pick: Literal["in-order", "shuffled", "random"] | None  # How matches get their material
    prompts: list[str]  # System prompts
    talk_of: str | None  # Partner’s messages from
    sampling: RoundSampling  # For all models.
    name: str  # The round’s name in lists.
    seed: int | None  # The same seed plays the same contexts and words.
    budget: JobBudget  # For its model calls.
    version: int


class TrainingSpec(TypedDict, total=False):
    """A model to train on a dataset: by which method, where, and from which base."""

    method: Required[str]  # How it learns.
    backend: str  # Here, or at a vendor.
    dataset: Required[str]  # What it learns from: a dataset’s number, its name (the latest version), or name@version.
    sft_data: str | None  # Supervised rows
    base: str | None  # Base
    reference: str | None  # The local model that it stays near. With rewards: the model that played.
    name: Required[str]  # For the new model: letters, digits, dots, dashes and underscores. Participants never see it.
    config: dict[str, Any]  # Further fields
    budget: TrainingBudget  # For training at a vendor.
    version: int


class CampaignSpec(TypedDict, total=False):
    """What is played, learnt and evaluated, how often, and what comes before. Each iteration's model is trained from
    the `previous` one or from the `base`, and learns from the rows of the `last` round or of `all` rounds so far.
    Shares of the matches are played against partners, from either seat, and the rest against the model itself; only
    what the model itself said is learnt. All models are evaluated on the same held-out material: as they play, at
    another temperature, and against each of some opponents with the seats swapped half of the time.
    """

    game: Required[str]  # Its name.
    base: Required[str]  # The local model that the first iteration begins with.
    iterations: int  # Each plays, filters, trains and evaluates.
    matches: int | Literal["all"]  # The newest model’s, in each iteration; all: one for each piece of the material.
    start: Literal["previous", "base"]  # Whose weights a new model begins with.
    data_of: Literal["last", "all"]  # Learns from
    evaluation: int  # The same for every model, on material that nothing is trained on.
    evaluation_temperature: float | Literal["none"]  # 0 is greedy: always the likeliest word; none: not at all.
    partners: list[str]  # Fixed opponents, four at most. Figures against them are the model’s own, in each role.
    play_with: dict[str, float | Literal["equal"]]  # Plays with
    start_data: str | None  # Starts with the dataset
    teacher: str | None  # Starts with a teacher
    start_method: str  # Rewards need matches that the base itself played.
    start_training: dict[str, Any]  # One a line, such as accumulation = 4.
    config: dict[str, Any]  # Such as objective=coop.
    lenient: bool  # Lenient reading of moves
    sampling: CampaignSampling  # For all models.
    material: TextFile | Path | Literal["all"] | None  # Material
    method: str  # How each model learns from what was played.
    filter: Literal["above_avg", "above_avg_nonzero", "nonzero", "all"] | None  # What a model learns from.
    grounded: bool  # Grounded only
    control: Literal["none", "random_rows", "shuffled_rewards"]  # Control
    message_weight: float  # In the loss. With 0 they are read and not learnt.
    proposal_weight: float  # In the loss. Proposals are all moves other than messages, including declarations.
    permutations: int  # Other orders of the item types
    rewards: Literal["none", "spag"] | None  # What moves are worth.
    decay: float | None  # Of rewards: from 0 to 1; each move has γ times the share of the one after it.
    role_weights: bool  # Where there are rewards: however often each wins.
    positive_only: bool  # All other moves are read and not learnt.
    training: dict[str, Any]  # One a line, such as accumulation = 4.
    sft_data: str | None  # A dataset of conversations that is mixed into each training.
    name: str  # Its models are called NAME-1, NAME-2 and so on.
    seed: int  # Rounds, evaluations and trainings follow from it.
    budget: JobBudget  # For its model calls.
    preset: Literal["lm-selfplay", "spag"]  # Published settings, which the other fields override.
    version: int


class BenchmarkSpec(TypedDict, total=False):
    """A model, and the tasks that it is scored on, all of them under the same settings."""

    model: Required[str]  # Model
    tasks: Required[str]  # Tasks
    item_limit: int | None  # Only each task’s first items.
    shots: int | None  # Solved ones; tasks that ship with Parlor take none.
    batch: int  # Sequences that are computed together. Fewer take less memory.
    budget: JobBudget  # For its model calls.
    version: int


class SocietySpec(TypedDict, total=False):
    """The models of a society with their shares of the agents, what they are asked, and its settings."""

    agents: Required[dict[str, float]]  # Models of the agents, each with its share of them: 1 and 1 are halves.
    systems: list[str]  # Agent models that are told not to warn and lecture by habit.
    observers: Required[list[str]]  # Models that rate each draft and each revision; of several the mean counts.
    config: SocietySettings  # For the grid, critics, memories and calls; they override the preset.
    questions: TextFile | Path | Literal["shipped"] | None  # One a line, or a list in JSON. Agents get them in turn.
    priors: TextFile | Path | Literal["shipped"] | None  # First memories
    embedder: str  # Whose vectors say what is similar: tfidf, model:NAME, api:MODEL or sentences:MODEL.
    name: str  # Name of the society in lists.
    seed: int  # For all random draws: the same seed gives the same world.
    budget: JobBudget  # For its model calls.
    version: int


class AssessmentSpec(TypedDict, total=False):
    """Two models, the questions that both answer, and the models that rate the answers."""

    model: Required[str]  # The one that is assessed: usually the newer one.
    base: Required[str]  # The model to compare with: usually the one it was trained from.
    raters: Required[list[str]]  # Raters
    questions: TextFile | Path | Literal["shipped"] | None  # Questions
    sampling: AnswerSampling  # For both models’ answers. The fields below override it.
    seed: int  # For answers and ratings. Both models answer a question with the same seed.
    budget: JobBudget  # For its model calls.
    version: int


class AlignmentSpec(TypedDict, total=False):
    """The model that learns, the agents of its societies, its two trainings, and the final comparison."""

    base: Required[str]  # A local model that answers chats: the one that learns.
    demonstrations: str | None  # Conversations for supervised training; of rated responses the best ones.
    sft: dict[str, Any]  # On the demonstrations; one a line, such as epochs = 2.
    share: float  # Of the agents, relative to the shares below. Alone, it has them all.
    agents: dict[str, float]  # Further models of the agents, each with its share of them.
    observers: Required[list[str]]  # Models that rate each draft and each revision; of several the mean counts.
    raters: list[str]  # Models that make the final comparison.
    society: SocietySettings  # For the grid, critics, memories and calls; they override the preset.
    embedder: str  # Whose vectors say what is similar: tfidf, model:NAME, api:MODEL or sentences:MODEL.
    questions: TextFile | Path | Literal["shipped"] | None  # Of the societies. One a line, or a list in JSON.
    priors: TextFile | Path | Literal["shipped"] | None  # First memories
    preset: Literal["published", "code"]  # Fields of stable-alignment, and how the rows of the society are mixed.
    train: dict[str, Any]  # They override the preset; one a line, such as batch = 8.
    held_out: TextFile | Path | None  # One a line, or a list in JSON; none that the societies are asked.
    sampling: AnswerSampling  # For both models’ answers. The fields below override it.
    name: str  # Its models are called NAME-sft and NAME-aligned.
    seed: int  # For all random draws: the same seed gives the same world.
    budget: JobBudget  # For its model calls.
    version: int


class RehearsalSpec(TypedDict, total=False):
    """The study whose copy the bots go through, their number, and what they do there."""

    study: Required[str]  # Its name, with @ and a number for another version than the newest.
    bots: int  # Twenty are under way at once.
    seed: int  # For their choices and answers.
    live: bool  # Against the models of the study
    budget: JobBudget  # For its model calls.
    version: int


class PublicationSpec(TypedDict, total=False):
    """A local model or a dataset, a place, and a licence."""

    model: str | None  # A local model: its checkpoint is published with its card.
    dataset: str | None  # Its rows are published with its card.
    to: Required[str]  # To
    revision: str | None  # In the repository; created if it does not exist.
    visibility: Literal["private", "public"]  # Who may see a newly created repository. An existing one stays as it is.
    licence: Required[str]  # Licence
    licence_link: str | None  # Its address, where the licence is other.
    version: int


class RecipeSpec(TypedDict, total=False):
    """A recipe to run, with the inputs that override those of its file."""

    recipe: TextFile | Path | None  # A YAML file of steps.
    inputs: dict[str, Any]  # Values that differ from those of the file, one a line, such as base = mine.
    sweep: dict[str, Any]  # Sweep
    seeds: str  # Each cell is done once with each, such as 1..5 or 1, 2, 3.
    name: str  # Its models are called NAME-STEP, with the values of the step’s loops.
    budget: JobBudget  # For its model calls.
    version: int


class MatchFilter(TypedDict, total=False):
    """Which matches: those for which all of this holds."""

    game: str  # Only this game.
    player: str  # Only matches of this model, or of people: person.
    role: str  # Only matches in which the player had this role.
    reason: str  # Only matches with this outcome, such as deal.
    status: str  # Only these: waiting, playing, over.
    source: str  # Only matches from here: live, terminal, selfplay, import, rehearsal.
    since: str  # Only matches that began on this day or later, in UTC.
    until: str  # Only matches that began on this day or earlier, in UTC.
    match: str  # Only this match, by its id.
    round: int  # Only this round, by its number.
    campaign: int  # Only rounds and evaluations of this campaign, by its number.
    study: str  # Only this study, by its name.
    arm: str  # Only arms of this name.
    consent: str  # Only matches whose people all agreed to training, or not all: given, missing.
    text: str  # Only matches in which this was said: words, "a phrase", begin*, -without.
    figures: str
    prompt: str  # Only matches in which a model was told this besides the rules: NAME, in any version, or NAME@VERSION.


# A match, with the columns of matches.csv.
Match = TypedDict(
    "Match",
    {
        "match_id": str | int | None,
        "round_id": str | int | None,
        "study_id": str | int | None,
        "index": int | str | None,
        "game": str | int | None,
        "config": Any,
        "seed": str | int | None,
        "status": str | int | None,
        "reason": str | int | None,
        "winner": int | str | None,
        "role_0": str | int | None,
        "player_0": str | int | None,
        "utility_0": float | None,
        "role_1": str | int | None,
        "player_1": str | int | None,
        "utility_1": float | None,
        "moves": int | str | None,
        "violations": int | str | None,
        "agreed": bool | None,
        "pareto_optimal": bool | None,
        "started_at": str | None,
        "ended_at": str | None,
        "words": int | str | None,
        "tokens": int | str | None,
        "first_proposal": int | str | None,
        "unspoken": bool | None,
        "points_0": int | str | None,
        "points_1": int | str | None,
        "got_0": Any,
        "got_1": Any,
        "counts": Any,
        "values_0": Any,
        "values_1": Any,
        "lambda": float | None,
        "source": str | int | None,
        "swapped": bool | None,
        "prompt_style_0": str | int | None,
        "prompt_version_0": int | str | None,
        "system_prompt_0": str | int | None,
        "prompt_style_1": str | int | None,
        "prompt_version_1": int | str | None,
        "system_prompt_1": str | int | None,
        "game_version": int | str | None,
        "lenient_moves": int | str | None,
        "answer_form_0": str | int | None,
        "answer_form_1": str | int | None,
    },
    total=False,
)


# A language model in the list of them.
ModelRow = TypedDict(
    "ModelRow",
    {
        "name": Any,
        "model_id": Any,
        "usable_in_rounds": Any,
        "offered_to_people": Any,
        "test_call": Any,
        "label": Any,
        "kind": Any,
        "games": Any,
        "for": Any,
        "server": Any,
        "matches": Any,
        "price_in": Any,
        "price_out": Any,
        "price_cached": Any,
        "price_cache_write": Any,
        "price_reasoning": Any,
        "created_at": str | None,
        "tags": Any,
        "notes": Any,
    },
    total=False,
)


class DatasetRow(TypedDict, total=False):
    """A dataset in the list of them."""

    name: Any  # Dataset
    dataset_id: Any  # Number
    version: Any  # Version
    origin: Any  # From
    kept: Any  # Kept
    rows: Any  # Rows
    matches: Any  # Matches
    words: Any  # Words
    sha256: Any  # SHA-256
    unusable_since: Any  # Unusable since, UTC
    created_at: str | None  # Created, UTC
    tags: Any  # Tags
    notes: Any  # Notes


class StudyRow(TypedDict, total=False):
    """A study in the list of them."""

    study: Any  # Study
    study_id: Any  # Number
    version: Any  # Versions
    title: Any  # Title
    waves: Any  # Waves
    enrolled: Any  # Entered
    loaded_at: str | None  # Loaded, UTC


class PersonRow(TypedDict, total=False):
    """A person of a wave."""

    participant: Any  # Person
    enrolment_id: Any  # Number
    where: Any  # Where
    since: Any  # Since, UTC
    arm: Any  # Arm
    matches: Any  # Finished matches
    ending: Any  # Ending
    pay: Any  # Pay
    currency: Any  # Currency
    entered_at: str | None  # Entered, UTC
    ended_at: str | None  # Ended, UTC
    device: Any  # Device
