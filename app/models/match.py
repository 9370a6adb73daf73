"""A match, its seats, its event log, and the calls of language models behind its moves.

The event log is the truth; the columns of `match` that can be derived from it are kept for queries and exports.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, String, Text, UniqueConstraint
from sqlalchemy import text as sql
from sqlalchemy.orm import Mapped, mapped_column

from app.core.extensions import Model
from app.models.types import Json, UtcDateTime

MATCH_ID = String(22)


class MatchRow(Model):
    """A match of a game. `lease_*` belong to the worker that is playing a model's turn in it."""

    __tablename__ = "match"
    __table_args__ = (
        Index("ix_match_to_play", "status", "model_to_move"),
        # Lists are ordered by start, whatever their filter: without this, a page would sort all matches of a game.
        Index("ix_match_game_started", "game", "started_at"),
        Index("ix_match_reason_started", "reason", "started_at"),
        # People's matches among a million of models', with what the overview counts of them, so that it reads no rows.
        Index("ix_match_source_started", "source", "started_at", "reason", "arm_id"),
        Index("ix_match_inserted_in_id", "inserted_in", "id"),
        Index(
            "ix_match_erased",  # few are
            "erased_at",
            sqlite_where=sql("erased_at IS NOT NULL"),
            postgresql_where=sql("erased_at IS NOT NULL"),
        ),
        # Orders of lists by figures, so that a page never sorts a million matches. The indexes by scores cover what
        # app/matches/figures.py computes; Alembic cannot compare these, so only migrations know them. None covers a
        # column that each move writes: PostgreSQL would then write to every index of the table with each move.
        Index(
            "ix_match_words",
            "words",
            "id",
            sqlite_where=sql("words IS NOT NULL"),
            postgresql_where=sql("words IS NOT NULL"),
        ),
        Index(
            "ix_match_moves",
            "moves",
            "id",
            sqlite_where=sql("moves IS NOT NULL"),
            postgresql_where=sql("moves IS NOT NULL"),
        ),
        Index(
            "ix_match_refused",
            "refused",
            "id",
            sqlite_where=sql("refused IS NOT NULL"),
            postgresql_where=sql("refused IS NOT NULL"),
        ),
        # What the overview counts of long rounds by day. A match is added when it ends, and people's matches never are.
        Index(
            "ix_match_round_ended",
            "round_id",
            "ended_at",
            sqlite_where=sql("round_id IS NOT NULL AND ended_at IS NOT NULL"),
            postgresql_where=sql("round_id IS NOT NULL AND ended_at IS NOT NULL"),
        ),
        UniqueConstraint("round_id", "index", name="uq_match_round"),
    )

    id: Mapped[str] = mapped_column(MATCH_ID, primary_key=True)
    game: Mapped[str] = mapped_column(String(40))
    source: Mapped[str] = mapped_column(String(20))  # live | terminal | selfplay | import | rehearsal
    round_id: Mapped[int | None] = mapped_column(ForeignKey("round.id"))
    index: Mapped[int | None]  # the position in the round, from 0
    arm_id: Mapped[int | None] = mapped_column(ForeignKey("arm.id"), index=True)  # the arm of its study
    position: Mapped[int | None]  # among its participant's matches in that study, from 0; None: practice
    options: Mapped[dict[str, Any] | None] = mapped_column(Json)  # in a study: when replies come, what the end shows
    status: Mapped[str] = mapped_column(String(10))  # waiting | playing | over
    seed: Mapped[int] = mapped_column(BigInteger)
    config: Mapped[dict[str, Any]] = mapped_column(Json)  # resolved
    start_key: Mapped[str | None] = mapped_column(String(64), unique=True)  # a start that is sent twice makes one match

    ply: Mapped[int] = mapped_column(default=0)
    to_move: Mapped[int | None]
    model_to_move: Mapped[bool] = mapped_column(default=False)
    violations: Mapped[int] = mapped_column(default=0)
    lenient_moves: Mapped[int] = mapped_column(default=0, server_default="0")  # accepted moves that were read leniently
    reason: Mapped[str | None] = mapped_column(String(40))
    winner: Mapped[int | None]
    utility_0: Mapped[float | None]
    utility_1: Mapped[float | None]
    agreed: Mapped[bool | None]
    pareto_optimal: Mapped[bool | None]
    words: Mapped[int | None]  # in all accepted moves, once the match is over
    moves: Mapped[int | None]  # `ply` once the match is over, for sorting lists
    refused: Mapped[int | None]  # `violations`, likewise
    first_proposal: Mapped[int | None]  # the ply of the first proposal, likewise
    unspoken: Mapped[bool | None]  # whether the split of a deal was never named in the talk; None: no deal, or not read
    measures: Mapped[dict[str, Any] | None] = mapped_column(Json)  # Game.measures, once it is over; None: not measured
    tokens: Mapped[int | None]  # in the models' accepted moves, if it is a round's match and the server counts them

    started_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    moved_at: Mapped[datetime] = mapped_column(UtcDateTime)
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    deadline: Mapped[datetime | None] = mapped_column(UtcDateTime, index=True)  # of the clock that runs out first
    erased_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # when a person's texts in it were deleted

    # The number of the transaction that inserted it: app/matches/arrival.py. 0: a migration or a backup did.
    inserted_in: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    lease_owner: Mapped[str | None] = mapped_column(String(80))
    lease_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    lease_count: Mapped[int] = mapped_column(default=0)  # leases for this turn; a turn that kills workers is given up
    enqueued_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class SeatRow(Model):
    """The player in a seat of a match."""

    __tablename__ = "seat"

    match_id: Mapped[str] = mapped_column(ForeignKey("match.id", ondelete="CASCADE"), primary_key=True)
    seat: Mapped[int] = mapped_column(primary_key=True)
    role: Mapped[str] = mapped_column(String(40))
    kind: Mapped[str] = mapped_column(String(10))  # person | model
    language_model_id: Mapped[int | None] = mapped_column(ForeignKey("language_model.id"), index=True)
    player: Mapped[str | None] = mapped_column(String(80))  # in an imported match: a name outside the registry
    training_consent: Mapped[bool | None]  # whether a person agreed that models learn from it; None: not asked
    participant_id: Mapped[int | None] = mapped_column(ForeignKey("participant.id"), index=True)
    enrolment_id: Mapped[int | None] = mapped_column(ForeignKey("enrolment.id"), index=True)
    prompt: Mapped[str | None] = mapped_column(String(60))  # NAME@VERSION of a model's prompt beside the rules


class EventRow(Model):
    """One event of a match's log. `body` is the event as `matches.events` writes it."""

    __tablename__ = "event"
    __table_args__ = (UniqueConstraint("match_id", "seat", "move_id", name="uq_event_move"),)

    match_id: Mapped[str] = mapped_column(ForeignKey("match.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)  # from 0, without gaps
    kind: Mapped[str] = mapped_column(String(20))
    seat: Mapped[int | None]
    ply: Mapped[int]  # accepted moves before this event
    move_id: Mapped[str | None] = mapped_column(String(64))
    body: Mapped[dict[str, Any]] = mapped_column(Json)
    timing: Mapped[dict[str, Any] | None] = mapped_column(Json)  # how a person wrote a move, by the browser's clock
    at: Mapped[datetime] = mapped_column(UtcDateTime)


class MatchText(Model):
    """The words that were said in a finished match, as app/matches/words.py reads them, for the search.

    Their full-text indexes are specific to each database, so only migrations know them.
    """

    __tablename__ = "match_text"

    id: Mapped[int] = mapped_column(primary_key=True)
    match_id: Mapped[str] = mapped_column(ForeignKey("match.id", ondelete="CASCADE"), unique=True)
    words: Mapped[str] = mapped_column(Text)


class MatchCount(Model):
    """The number of finished matches that agree in all of these columns, and the sums of their scores:
    app/matches/counts.py.

    Several rows may agree and are added up, so a match that ends needs no lock that another one holds. `round_id` is
    NULL in counts of all matches, those of rounds included. A seat is a model's, or an imported player's, or a
    person's.
    """

    __tablename__ = "match_count"

    id: Mapped[int] = mapped_column(primary_key=True)
    round_id: Mapped[int | None] = mapped_column(ForeignKey("round.id", ondelete="CASCADE"), index=True)
    game: Mapped[str] = mapped_column(String(40))
    source: Mapped[str] = mapped_column(String(20))
    reason: Mapped[str | None] = mapped_column(String(40))
    model_0_id: Mapped[int | None]
    model_1_id: Mapped[int | None]
    imported_0: Mapped[bool]
    imported_1: Mapped[bool]

    matches: Mapped[int]  # negative if some were deleted
    scored: Mapped[int]  # those of them with scores
    points_0: Mapped[float]  # the sum of the first seat's scores
    points_1: Mapped[float]


class GenerationRow(Model):
    """One call of a language model: the exact prompt, the response, and its cost.

    It belongs to a turn of a match, to an interaction of a society, to an answer of an assessment, to a request of its
    own, or, if texts were embedded, to a society.
    """

    __tablename__ = "generation"
    __table_args__ = (
        Index("ix_generation_turn", "match_id", "ply", "attempt"),
        # Covers only interactions and assessed answers, so that calls of matches pay nothing for it. Each call is
        # answered once.
        Index(
            "ix_generation_call",
            "interaction_id",
            "call",
            unique=True,
            sqlite_where=sql("interaction_id IS NOT NULL AND error IS NULL"),
            postgresql_where=sql("interaction_id IS NOT NULL AND error IS NULL"),
        ),
        Index(
            "ix_generation_assessed",
            "answer_id",
            "call",
            unique=True,
            sqlite_where=sql("answer_id IS NOT NULL AND error IS NULL"),
            postgresql_where=sql("answer_id IS NOT NULL AND error IS NULL"),
        ),
        Index(
            "ix_generation_embedding",
            "society_id",
            sqlite_where=sql("society_id IS NOT NULL"),
            postgresql_where=sql("society_id IS NOT NULL"),
        ),
        Index(
            "ix_generation_removal",
            "removal_id",
            sqlite_where=sql("removal_id IS NOT NULL"),
            postgresql_where=sql("removal_id IS NOT NULL"),
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    match_id: Mapped[str | None] = mapped_column(ForeignKey("match.id", ondelete="CASCADE"))
    seat: Mapped[int | None]
    ply: Mapped[int | None]
    request_id: Mapped[int | None] = mapped_column(ForeignKey("model_request.id", ondelete="CASCADE"), index=True)
    interaction_id: Mapped[int | None] = mapped_column(ForeignKey("society_interaction.id", ondelete="CASCADE"))
    answer_id: Mapped[int | None] = mapped_column(ForeignKey("assessed_answer.id", ondelete="CASCADE"))
    society_id: Mapped[int | None] = mapped_column(ForeignKey("society.id", ondelete="CASCADE"))
    # For a call whose texts and owner were removed; its cost stays. No foreign key, as SQLite would have to rebuild the
    # largest table to add one.
    removal_id: Mapped[int | None]
    call: Mapped[str | None] = mapped_column(String(40))  # which call of the interaction or answer: draft, critique 17
    attempt: Mapped[int]  # from 0; after a refused attempt, the next prompt gives the reason
    language_model_id: Mapped[int | None] = mapped_column(ForeignKey("language_model.id"))
    model: Mapped[str] = mapped_column(String(200))
    prompt: Mapped[list[dict[str, str]]] = mapped_column(Json)
    text: Mapped[str | None] = mapped_column(Text)
    token_ids: Mapped[list[int] | None] = mapped_column(Json)  # as a local model sampled them, its end marker last
    # Of the sampled tokens, before masks, temperature and limits: a little-endian float32 for each of token_ids.
    log_probs: Mapped[bytes | None] = mapped_column(LargeBinary, deferred=True)
    # The model's reasoning, which only experimenters see, and which enters no prompt and no training.
    reasoning: Mapped[str | None] = mapped_column(Text, deferred=True)
    sampling: Mapped[dict[str, Any]] = mapped_column(Json)
    prompt_tokens: Mapped[int | None]
    completion_tokens: Mapped[int | None]
    cached_tokens: Mapped[int | None]  # tokens of the prompt read from the server's cache
    cache_write_tokens: Mapped[int | None]  # tokens of the prompt written to it
    reasoning_tokens: Mapped[int | None]  # tokens of the completion
    estimated_tokens: Mapped[int | None]  # roughly how many the server did not count
    cost: Mapped[float | None]  # USD; None: unknown, or a model that costs nothing
    cost_source: Mapped[str | None] = mapped_column(String(10))  # how it is known: jobs.call_costs.CostSource
    outcome: Mapped[str | None] = mapped_column(String(30))  # core.failures.Outcome
    latency: Mapped[float]  # seconds
    retries: Mapped[int]
    error: Mapped[str | None] = mapped_column(Text)
    at: Mapped[datetime] = mapped_column(UtcDateTime)
