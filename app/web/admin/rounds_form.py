"""The launch form of rounds: its fields, filled in from defaults or like an earlier round, and the round asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Request
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.errors import AppError, Invalid, Phrase
from app.core.validation import whole_number
from app.games import find_game
from app.games.base import JSON
from app.models import LanguageModel, RoundMaterial, RoundRow
from app.rounds import lifecycle, matrix
from app.rounds.job import ROUND
from app.rounds.plan import RANDOM, usual_pick
from app.rounds.spec import MOST_MATCHES, RoundSpec
from app.web.admin.game_fields import (
    AGAIN,
    material_defaults,
    material_field,
    material_files,
    option_defaults,
    option_values,
    read_material,
    read_options,
)
from app.web.admin.spec_form import refusal
from app.web.forms import RefusedField, one_of

PAIR, CROSS = "pair", "cross"
EACH_ONCE, DRAWN = "each", "random"


@dataclass(frozen=True, slots=True)
class RoundForm:
    """What the form asks for: a round of each pair of models, all with the same spec."""

    spec: RoundSpec
    material: lifecycle.Material | None

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return matrix.pairs(self.spec.game, self.spec.models) if self.spec.cross_play else [self.spec.seats]


# ---- Filling in --------------------------------------------------------------


def defaults(game: str, models: Sequence[LanguageModel]) -> JSON:
    """The form of a game as it is first shown; every value is text, as a browser sends it back."""
    name = models[0].name if models else ""
    found = find_game(game)
    sampling = {"temperature": 1.0, **found.sampling}
    return {
        "game": game, "players": PAIR, "model_0": name, "model_1": name, "models": [], "matches": "100",
        **option_defaults(found), **material_defaults(found), "order": EACH_ONCE, "swap_seats": "", "greedy": "",
        **{field: str(sampling.get(field, "")) for field in ("temperature", "top_k", "max_tokens")},
        "seed": "", "name": "", "like": "", "agreed": "",
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
    game = find_game(row.game)
    found |= option_values(game, row.config)
    if game.material is not None and session.get(RoundMaterial, row.id) is not None:
        found[game.material.name] = AGAIN
    return found


def typed(request: Request, game: str, models: Sequence[LanguageModel]) -> JSON:
    """The form as it was sent; what came as a file stands in its text field, and so comes back with the page."""
    form = request.form
    found: JSON = {name: form.get(name, "").strip() for name in defaults(game, models) if name != "models"}
    return found | {"game": game, "models": form.getlist("models"), **material_files(find_game(game), request)}


# ---- Reading -----------------------------------------------------------------


def read(session: Session, form: Mapping[str, Any], settings: Settings) -> RoundForm:
    """What a form asks for. Raises RefusedField."""
    try:
        return _read(session, form, settings)
    except AppError as error:
        if (error.field or "").startswith("sampling."):
            raise refusal(RoundSpec, error) from None
        raise RefusedField(field_of(error, form["game"]), error) from None


def field_of(error: AppError, game: str) -> str:
    """The field of the form that an error of a layer below is about; empty if it is about none."""
    name = error.field or ""
    return {"model": "model_0", "option": "model_0", "config": material_field(find_game(game))}.get(name, name)


def _read(session: Session, form: Mapping[str, Any], settings: Settings) -> RoundForm:
    known = find_game(form["game"])
    game = known.name
    cross = one_of("players", form, (PAIR, CROSS)) == CROSS
    models = _models(form, cross)
    if cross:
        matrix.pairs(game, models)
    items = read_material(known, form, settings, lambda: _again(session, form, game))
    spec = RoundSpec.read(
        {
            **{name: form[name] for name in ("game", "seed", "name")},
            "cross_play": cross,
            "models": models,
            "matches": whole_number(form["matches"] or _each_once(form, items), "matches", 1, MOST_MATCHES),
            "config": read_options(known, form),
            "swap_seats": bool(form["swap_seats"]),
            "pick": _pick(form, game) if known.material is not None else usual_pick(game),
            "sampling": _sampling(form),
        }
    )
    return RoundForm(spec, items)


def _each_once(form: Mapping[str, Any], items: lifecycle.Material | None) -> int | str:
    """How many matches play each piece of the material once; nothing where there is no list of them."""
    return "" if items is None else len(items.items) * (2 if form["swap_seats"] else 1)


def _models(form: Mapping[str, Any], cross: bool) -> list[str]:
    if not cross:
        for name in ("model_0", "model_1"):
            if not form[name]:
                raise RefusedField(name, Invalid(name, expected=Phrase("a model"), got=Phrase("none")))
        return [form["model_0"], form["model_1"]]
    return list(form["models"])


def _sampling(form: Mapping[str, Any]) -> JSON:
    given = {name: form[name] for name in ("temperature", "top_k", "max_tokens") if form[name]}
    if form["greedy"]:
        given["temperature"] = 0
    return given


def _pick(form: Mapping[str, Any], game: str) -> str:
    return RANDOM if one_of("order", form, (EACH_ONCE, DRAWN)) == DRAWN else usual_pick(game)


def _again(session: Session, form: Mapping[str, Any], game: str) -> lifecycle.Material:
    row = ROUND.get(session, whole_number(form["like"], "like", 1, 2**31 - 1))
    kept = session.get(RoundMaterial, row.id)
    if kept is None or row.game != game:
        raise Invalid(
            "like",
            expected=Phrase("a round of %(game)s with material of its own", game=game),
            got=Phrase("round %(number)s", number=row.id),
        )
    return lifecycle.Material(kept.source, kept.items)
