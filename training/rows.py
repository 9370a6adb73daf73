"""A training's rows in the form its method needs: conversations, moves with rewards, or comparisons."""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from training import checkpoints
from training.comparisons import Comparison, read_comparisons
from training.data import (
    Conversation,
    Grouped,
    Rows,
    TokenRows,
    read_conversations,
    read_rows,
    read_sides,
    render_rows,
    without_matches_of,
)
from training.errors import TrainingRefused
from training.hashes import file_hash
from training.log_probs import ReferenceLogProbs
from training.methods.base import SUPERVISED, Config, Method, Need
from training.methods.offline_po import OfflinePoConfig
from training.methods.reference import WithReference
from training.methods.stable_alignment import StableAlignmentConfig
from training.methods.supervised import WithSupervisedRows
from training.rendering import SHORTENED, SKIPPED, MarkedTokens, Renderer
from training.rewards import RoleBaselines, check_policy, is_move, rewarded_rows, warnings_about_kl
from training.span_data import REWARDED, SpanItem, SpanRows, rows_of_spans, stored_log_probs


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Rows to train on and, if any, to evaluate on, and how many of each were read.

    `provenance` is what the checkpoint records about them besides their file's hash. `counts` are also for it, and for
    the progress events: `stored_reference_rows` and `computed_reference_rows`, for a method with a reference model,
    count the rows whose ℓ_ref was stored in play or was computed; `sft_rows` counts the training rows from `sft_data`,
    and `sft_rows_left_out` those excluded because their matches are held out. `warnings` are lines for the events.
    """

    rows: Rows
    aside: Rows | None
    read: int
    read_aside: int
    provenance: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ReferenceModel:
    """A reference model: its identity, and ℓ_ref of the spans of sequences under it."""

    identity: str
    log_probs: Callable[[Sequence[MarkedTokens]], Sequence[tuple[float, ...]]]


def load_rows(method: Method, config: Config, model: Any, tokenizer: Any, render: Renderer) -> TrainingRows:
    """Read and render the config's rows; `model` is the one that the training starts from.

    Raises Refused for rows, or a reference model, that the method cannot be trained with.
    """

    def reference(config: WithReference) -> ReferenceModel:
        return _local_reference(config, model, tokenizer, render)

    return render_config_rows(method, config, render, reference)


def render_config_rows(
    method: Method, config: Config, render: Renderer, reference: Callable[[WithReference], ReferenceModel]
) -> TrainingRows:
    """Read and render the config's rows; `reference` provides the reference model, for a method that has one.

    Raises Refused for rows that the method cannot be trained with, and as `reference` does.
    """
    if isinstance(config, StableAlignmentConfig):
        return _comparisons(config, render)
    if isinstance(config, WithReference):
        return _spans(method, config, render, reference(config))
    train, aside = read_rows(config)
    rendered = render_rows(aside, render) if aside else None
    return TrainingRows(render_rows(train, render), rendered, len(train), len(aside))


def _comparisons(config: StableAlignmentConfig, render: Renderer) -> TrainingRows:
    train, aside = read_sides(config, partial(read_comparisons, scale=config.rating_scale))
    supervised = _read_supervised(config, aside)
    rendered = _render_comparisons(config, aside, render) if aside else None
    compared, others = _render_comparisons(config, train, render), _render_responses(supervised.rows, render)
    groups = (*compared.groups, *others.groups)
    rows = SpanRows((*compared.items, *others.items), groups, compared.too_long + others.too_long)
    read = len(train) + len(supervised.rows)
    return TrainingRows(rows, rendered, read, len(aside), supervised.provenance, supervised.counts)


def _render_responses(rows: Sequence[Conversation], render: Renderer) -> SpanRows:
    """One item for each move to be learnt, treated as a query with one response."""
    items: list[SpanItem] = []
    groups: list[str] = []
    too_long: Counter[str] = Counter()
    for row in rows:
        moves = [
            replace(row, messages=(*({**before, "weight": 0} for before in row.messages[:at]), each))
            for at, each in enumerate(row.messages)
            if is_move(each)
        ]
        found = render_rows(moves, render)
        items += [SpanItem((each,), (REWARDED,)) for each in found.sequences]
        groups += found.groups
        too_long += Counter(set(found.too_long))
    return SpanRows(tuple(items), tuple(groups), too_long)


def _render_comparisons(config: StableAlignmentConfig, rows: Sequence[Comparison], render: Renderer) -> SpanRows:
    """One item for each query, with the best response first. Which others are compared depends only on seed and row.

    A query is left out if any of these responses has to be left out: nothing replaces it.
    """
    items: list[SpanItem] = []
    groups: list[str] = []
    too_long: Counter[str] = Counter()
    for each in rows:
        chosen = each.chosen(config.num_comp - 1, random.Random(f"{config.seed}:{each.place.rpartition(', ')[2]}"))
        compared = [each.conversation(*response) for response in chosen]
        responses = _under_one_prompt(compared, render)
        if SKIPPED in responses.too_long:
            too_long[SKIPPED] += 1
            continue
        too_long += responses.too_long
        items.append(SpanItem(responses.sequences, (REWARDED,)))
        groups.append(each.group)
    return SpanRows(tuple(items), tuple(groups), too_long)


def _under_one_prompt(compared: Sequence[Conversation], render: Renderer) -> TokenRows:
    """The responses to a query, with as many old turns dropped as needed to fit the longest of them.

    They count as one row in `too_long`.
    """
    found = whole = render_rows(compared, render)
    for messages in render.shorter(compared[0].messages):
        if not found.too_long:
            break
        found = render_rows([replace(each, messages=(*messages[:-1], each.messages[-1])) for each in compared], render)
    return replace(found, too_long=Counter({*whole.too_long} & {SHORTENED} | {*found.too_long}))


def _local_reference(config: WithReference, model: Any, tokenizer: Any, render: Renderer) -> ReferenceModel:
    identity = checkpoints.check(config.reference or config.base, config.reference_sha256 if config.reference else None)
    load = partial(_reference_model, config, model, tokenizer)
    known_as = f"{identity} {render.tokenizer_hash}"
    return ReferenceModel(
        identity, ReferenceLogProbs(config, config.cache_folder, known_as, load, tokenizer.pad_token_id or 0)
    )


def _spans(method: Method, config: WithReference, render: Renderer, reference: ReferenceModel) -> TrainingRows:
    train, aside = read_rows(config)
    rewarded = Need.REWARDS in method.needs
    identity = reference.identity
    if rewarded:
        by_role = config if isinstance(config, OfflinePoConfig) and config.advantage == "role" else None
        baselines = RoleBaselines(by_role.decay) if by_role else None
        train, aside = rewarded_rows(train, baselines), rewarded_rows(aside, baselines)
        check_policy([*train, *aside], identity)
    warnings = warnings_about_kl(train, config.kl) if isinstance(config, OfflinePoConfig) else []
    supervised = _read_supervised(config, aside)
    train = [*train, *supervised.rows]

    counts = Counter(stored_reference_rows=0, computed_reference_rows=0)

    def prepared(rows: Sequence[Conversation]) -> SpanRows:
        found = render_rows([_usable(row, identity, config.precision) for row in rows], render)
        spans = rows_of_spans(found, rewarded)
        compared = {row for row, item in zip(found.rows, spans.items, strict=True) if item.is_compared}
        computed = {
            row
            for row, each in zip(found.rows, found.sequences, strict=True)
            if row in compared and stored_log_probs(each) is None
        }
        counts["computed_reference_rows"] += len(computed)
        counts["stored_reference_rows"] += len(compared) - len(computed)
        return spans.with_reference(reference.log_probs)

    rendered = prepared(aside) if aside else None
    provenance = {"reference_sha256": identity, **supervised.provenance}
    rows = prepared(train)
    told = {**counts, **supervised.counts}
    return TrainingRows(rows, rendered, len(train), len(aside), provenance, told, warnings)


@dataclass(frozen=True, slots=True)
class _SupervisedRows:
    """The rows mixed in from `sft_data`; empty without that file."""

    rows: Sequence[Conversation] = ()
    provenance: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


def _read_supervised(config: Config, aside: Sequence[Grouped]) -> _SupervisedRows:
    """The rows of `sft_data`, without those of held-out matches, so that held-out matches stay unseen.

    Raises Refused, also where no row is left.
    """
    if not isinstance(config, WithSupervisedRows) or config.sft_data is None:
        return _SupervisedRows()
    found = read_conversations(config.sft_data)
    kept = without_matches_of(found, aside)
    if not kept:
        raise TrainingRefused(
            f"{config.sft_data}: expected a row of a match that is not kept aside, got {len(found)} of such as are;"
            " lower eval_share, or leave sft_data out"
        )
    rows = rewarded_rows(replace(each, type=SUPERVISED) for each in kept)
    counts = {"sft_rows": len(kept), "sft_rows_left_out": len(found) - len(kept)}
    return _SupervisedRows(rows, {"sft_data_sha256": file_hash(config.sft_data)}, counts)


def _usable(row: Conversation, reference_sha256: str, precision: str) -> Conversation:
    """The row without log-probabilities from a model other than the reference, from another precision, or from a
    server, which computes in its own way.
    """
    if row.policy == reference_sha256 and row.dtype == precision and row.engine is None:
        return row
    bare = ({name: value for name, value in each.items() if name != "log_probs"} for each in row.messages)
    return replace(row, messages=tuple(bare))


def _reference_model(config: WithReference, model: Any, tokenizer: Any, longest: int) -> Any:
    """The reference model: the one that the training starts from, unless another is named.

    Raises Refused where that has another vocabulary, or takes fewer than `longest` tokens.
    """
    if config.reference is None:
        return model
    found, own = checkpoints.load(config.reference)
    if own.get_vocab() != tokenizer.get_vocab():
        raise TrainingRefused(
            f"reference: expected the vocabulary of the base ({len(tokenizer)} tokens), got another one"
            f" ({len(own)} tokens) in {config.reference}; name a checkpoint that was trained from the same model"
        )
    if checkpoints.length_of(found) < longest:
        raise TrainingRefused(
            f"reference: expected a model that takes {longest} tokens, got one that takes"
            f" {checkpoints.length_of(found)} in {config.reference}; lower max_length"
        )
    return found
