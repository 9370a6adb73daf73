"""The launch form of rounds: its fields, filled in anew or like a round that was, and the wish that they stand for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Request
from sqlalchemy.orm import Session

from app.errors import AppError, Invalid, Phrase
from app.games import find_game
from app.games.base import JSON
from app.games.negotiation.rules import MOST_MOVES, PRESETS
from app.games.taboo.judges import RULES
from app.matches.lobby import new_seed, read_seed
from app.models import LanguageModel, RoundMaterial, RoundRow
from app.rounds import lifecycle, material, matrix
from app.rounds.job import ROUND
from app.rounds.plan import IN_ORDER, RANDOM, SHUFFLED
from app.validation import whole_number
from app.web.forms import RefusedField, one_of

MOST_UPLOADED = 400_000  # characters of a file of contexts or words
PAIR, CROSS = "pair", "cross"
GENERATED, SERVER, UPLOAD, AGAIN, LIST = "generated", "server", "upload", "again", "list"
EACH_ONCE, DRAWN = "each", "random"


@dataclass(frozen=True, slots=True)
class RoundForm:
    """What the form asks for: a round of each pair of models, all with the same wish."""

    wish: lifecycle.RoundSpec
    models: Sequence[str]  # of a cross-play; else the two of the wish
    cross: bool

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return matrix.pairs(self.wish.game, self.models) if self.cross else [self.wish.models]


# ---- Filling in --------------------------------------------------------------


def defaults(game: str, models: Sequence[LanguageModel]) -> JSON:
    """The form of a game as it is first shown; every value is text, as a browser sends it back."""
    name = models[0].name if models else ""
    taboo = game == "taboo"
    return {
        "game": game, "players": PAIR, "model_0": name, "model_1": name, "models": [],
        "matches": "100", "objective": "self", "lam": "0.5", "limit": str(MOST_MOVES), "contexts": GENERATED,
        "contexts_text": "", "words": LIST, "words_text": "", "order": EACH_ONCE, "max_turns": "5", "rule": RULES[0],
        "swap_seats": "", "temperature": "1.2" if taboo else "1.0", "greedy": "", "top_k": "50" if taboo else "",
        "max_tokens": "", "seed": "", "name": "", "like": "", "contexts_name": "", "words_name": "", "agreed": "",
    }  # fmt: skip


def like(session: Session, row: RoundRow, models: Sequence[LanguageModel]) -> JSON:
    """The form filled in as it was for a round."""
    seats = [model.name for model in lifecycle.seated(session, row)]
    found = defaults(row.game, models) | {
        "model_0": seats[0] if seats else "", "model_1": seats[-1] if seats else "", "matches": str(row.matches),
        "swap_seats": "1" if row.swap_seats else "", "seed": str(row.seed), "name": row.name, "like": str(row.id),
        "order": DRAWN if row.pick == RANDOM else EACH_ONCE,
    }  # fmt: skip
    sampling = row.sampling
    found["greedy"] = "1" if sampling.get("temperature") == 0 else ""
    for name in ("temperature", "top_k", "max_tokens"):
        found[name] = "" if sampling.get(name) is None else f"{sampling[name]:g}"
    for name in ("limit", "max_turns", "rule"):
        if name in row.config:
            found[name] = str(row.config[name])
    objective = row.config.get("objective", "self")
    found["objective"] = objective if objective in PRESETS else "lambda"
    if objective not in PRESETS:
        found["lam"] = f"{objective:g}"
    if session.get(RoundMaterial, row.id) is not None:
        found["contexts"] = found["words"] = AGAIN
    return found


def typed(request: Request, game: str, models: Sequence[LanguageModel]) -> JSON:
    """The form as it was sent; what came as a file stands in its text field, and so comes back with the page."""
    form = request.form
    found: JSON = {name: form.get(name, "").strip() for name in defaults(game, models) if name != "models"}
    return found | {"game": game, "models": form.getlist("models"), **files_of(request)}


def files_of(request: Request) -> JSON:
    """The fields of a form that files were chosen for: their text, their name, and that they are what is meant."""
    found: JSON = {}
    for name in ("contexts", "words"):
        file = request.files.get(f"{name}_file")
        if file is not None and file.filename:
            text = file.read(4 * MOST_UPLOADED).decode("utf-8", errors="replace")
            found |= {f"{name}_text": text.replace("\0", "\ufffd"), f"{name}_name": file.filename, name: UPLOAD}
    return found


# ---- Reading -----------------------------------------------------------------


def read(session: Session, form: Mapping[str, Any], contexts_file: str) -> RoundForm:
    """What a form asks for. Raises RefusedField."""
    try:
        return _read(session, form, contexts_file)
    except AppError as error:
        raise RefusedField(field_of(error), error) from None


def field_of(error: AppError) -> str:
    """The field of the form that an error of a layer below is about; empty if it is about none."""
    name = error.field or ""
    return {"model": "model_0", "option": "model_0", "config": "contexts"}.get(name, name)


def _read(session: Session, form: Mapping[str, Any], contexts_file: str) -> RoundForm:
    game = find_game(form["game"]).name
    cross = one_of("players", form, (PAIR, CROSS)) == CROSS
    models = _models(form, cross)
    if cross:
        matrix.pairs(game, models)
    items = _material(session, game, form, contexts_file)
    wish = lifecycle.RoundSpec(
        game=game,
        models=(models[0], models[-1]),
        matches=whole_number(form["matches"] or _each_once(form, items), "matches", 1, lifecycle.MOST_MATCHES),
        seed=read_seed(form["seed"]) if form["seed"] else new_seed(),
        config=_config(game, form),
        swap_seats=bool(form["swap_seats"]),
        pick=_pick(game, form),
        material=items,
        sampling=_sampling(form),
        name=form["name"],
    )
    return RoundForm(wish, models, cross)


def _each_once(form: Mapping[str, Any], items: lifecycle.Material | None) -> int | str:
    """How many matches play each context or word once; nothing where there is no list of them."""
    return "" if items is None else len(items.items) * (2 if form["swap_seats"] else 1)


def _models(form: Mapping[str, Any], cross: bool) -> list[str]:
    if not cross:
        for name in ("model_0", "model_1"):
            if not form[name]:
                raise RefusedField(name, Invalid(name, expected=Phrase("a model"), got=Phrase("none")))
        return [form["model_0"], form["model_1"]]
    return list(form["models"])


def _config(game: str, form: Mapping[str, Any]) -> JSON:
    if game == "negotiation":
        objective = one_of("objective", form, (*PRESETS, "lambda"))
        value: Any = objective if objective != "lambda" else read_lam(form["lam"])
        return {"objective": value, "limit": whole_number(form["limit"] or MOST_MOVES, "limit", 1, 1000)}
    config = {"max_turns": form["max_turns"] or 5, "rule": one_of("rule", form, RULES)} if game == "taboo" else {}
    if config:
        config["max_turns"] = find_game(game).config(config).to_json()["max_turns"]
    return config


def read_lam(text: str) -> float:
    """λ as it was typed. Raises Invalid."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not -1 <= value <= 1:
        raise Invalid("lam", expected=Phrase("a number from -1 to 1"), got=text)
    return value


def _sampling(form: Mapping[str, Any]) -> JSON:
    given = {name: form[name] for name in ("temperature", "top_k", "max_tokens") if form[name]}
    if form["greedy"]:
        given["temperature"] = 0
    return given


def _pick(game: str, form: Mapping[str, Any]) -> str:
    if one_of("order", form, (EACH_ONCE, DRAWN)) == DRAWN:
        return RANDOM
    return SHUFFLED if game == "taboo" else IN_ORDER


def _material(session: Session, game: str, form: Mapping[str, Any], contexts_file: str) -> lifecycle.Material | None:
    if game == "negotiation":
        source = one_of("contexts", form, (GENERATED, SERVER, UPLOAD, AGAIN))
        if source == SERVER:
            if not contexts_file:
                raise Invalid(
                    "contexts",
                    expected=Phrase("a file in the setting CONTEXTS_FILE"),
                    got=Phrase("none"),
                    remedy=Phrase("upload one instead"),
                )
            served: lifecycle.Material = about("contexts", lambda: material.contexts(contexts_file))
            return served
        if source == UPLOAD:
            return uploaded("contexts", form, material.contexts_in)
        return _again(session, form, game) if source == AGAIN else None
    if game == "taboo":
        source = one_of("words", form, (LIST, UPLOAD, AGAIN))
        if source == UPLOAD:
            return uploaded("words", form, material.words_in)
        return _again(session, form, game) if source == AGAIN else material.words(material.ALL)
    return None


def uploaded(name: str, form: Mapping[str, Any], read_text: Any) -> lifecycle.Material:
    """Material that was uploaded or typed, read by `read_text`. Raises Invalid and RefusedField."""
    text = form[f"{name}_text"]
    if not text.strip():
        raise Invalid(name, expected=Phrase("a file or lines of text"), got=Phrase("nothing"))
    if len(text) > MOST_UPLOADED:
        raise Invalid(
            name,
            expected=Phrase("at most %(most)s characters here", most=MOST_UPLOADED),
            got=len(text),
            remedy=Phrase("the command line takes longer files by --%(name)s FILE", name=name),
        )
    source = form.get(f"{name}_name") or f"the {name} of the form"
    found: lifecycle.Material = about(name, lambda: read_text(text, source))
    return found


def about(name: str, work: Any) -> Any:
    """What `work` returns; what it refuses is said of the field."""
    try:
        return work()
    except AppError as error:
        raise RefusedField(name, error) from None


def _again(session: Session, form: Mapping[str, Any], game: str) -> lifecycle.Material:
    row = ROUND.get(session, whole_number(form["like"], "like", 1, 2**31 - 1))
    kept = session.get(RoundMaterial, row.id)
    if kept is None or row.game != game:
        raise Invalid(
            "like",
            expected=Phrase("a round of %(game)s with contexts or words of its own", game=game),
            got=Phrase("round %(number)s", number=row.id),
        )
    return lifecycle.Material(kept.source, kept.items)
