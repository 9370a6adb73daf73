"""Starting rounds and cross-plays: what their form has beyond the spec."""

from collections.abc import Sequence

from flask import request, url_for
from flask_babel import lazy_gettext
from sqlalchemy.orm import Session

from app.core.errors import AppError, Invalid, Phrase
from app.core.extensions import reading
from app.games import GAMES, find_game
from app.games.base import JSON
from app.models import RoundMaterial, RoundRow
from app.registry import round_models
from app.rounds import estimate, lifecycle, matrix
from app.rounds.estimate import Estimate
from app.rounds.job import ROUND, SELFPLAY
from app.rounds.lifecycle import Material
from app.rounds.spec import RoundSpec
from app.web.admin.game_fields import material_field
from app.web.admin.job_form import Asked, FormWords, JobForm, register_form
from app.web.admin.spec_form import Form
from app.web.forms import RefusedField
from app.web.seats import settings


class _RoundForm(JobForm[RoundRow, RoundSpec]):
    kind = ROUND
    spec = RoundSpec
    words = FormWords(
        title=lazy_gettext("New round"),
        intro=lazy_gettext("Models play many matches against each other. Workers play them; you can close this page."),
        start=lazy_gettext("Start"),
        back=lazy_gettext("Back to the rounds"),
        estimate=lazy_gettext("What it will take"),
        estimate_hint=lazy_gettext("Matches, calls, tokens, money and time, from past matches of these models."),
    )
    estimate_template = "admin/round-estimate.html"

    def suggested(self, session: Session, given: JSON) -> JSON:
        game = find_game(given.get("game") or next(iter(GAMES)))
        models = [row.name for row in round_models(session, game.name)]
        return {
            "game": game.name,
            "models": models[:1],
            **given,
            **_models_if_given(request.args.getlist("models")),
        }

    def read(self, session: Session, form: Form) -> Asked[RoundSpec]:
        """Read the form, name the material by its source, and settle what was left open, as the estimate needs it."""
        asked = super().read(session, form)
        material = asked.files["material"]
        named = asked.spec.model_copy(update={"material": material and material.source})
        return asked._replace(spec=lifecycle.with_open_fields_filled(named, material))

    def address(self, numbers: Sequence[int]) -> str:
        """The address of the cross-play, or else of the round."""
        return super().address(numbers) if len(numbers) == 1 else url_for("admin.round_matrix", round_id=numbers[0])

    def files_of(self, row: RoundRow) -> JSON:
        with reading() as session:
            kept = session.get(RoundMaterial, row.id)
        return {"material": None if kept is None else Material(kept.source, kept.items)}

    def spec_of(self, session: Session, row: RoundRow) -> JSON:
        if row.source != SELFPLAY:
            self.refuse_imported(row)
        return lifecycle.spec_of(session, row).to_json()

    def estimated(self, session: Session, asked: Asked[RoundSpec]) -> Estimate:
        """The expected effort. Raises Invalid for a model that cannot play."""
        spec = asked.spec
        pairs = matrix.pairs(spec.game, spec.models) if spec.cross_play else [spec.seats]
        playing = {name for pair in pairs for name in pair}
        rows = {row.name: row for row in round_models(session, spec.game) if row.name in playing}
        if missing := sorted(playing - set(rows)):
            expected = Phrase("one that plays %(game)s and is usable in rounds", game=spec.game)
            raise Invalid("models", expected=expected, got=missing[0])
        habits = {name: estimate.habit_of(session, row, spec.game, dict(spec.config)) for name, row in rows.items()}
        channels = {name: estimate.channel_of(row) for name, row in rows.items()}
        return estimate.estimate(pairs, spec.matches or 0, habits, channels)

    def agreement(self, expected: Estimate) -> str:
        return f"{expected.rounds} rounds, {expected.matches} matches"

    def excess(self, expected: Estimate) -> str:
        """The quantity to confirm: also matches, whatever they cost."""
        most = settings().CONFIRM_MATCHES
        return "matches" if most and expected.matches > most else super().excess(expected)

    def refusal(self, error: AppError, form: Form) -> RefusedField:
        if error.field in ("models", "model", "option"):
            return RefusedField("models" if form["cross_play"] else "model_0", error)
        if error.field == "config":
            return RefusedField(material_field(find_game(form["game"])), error)
        return super().refusal(error, form)


def _models_if_given(models: Sequence[str]) -> JSON:
    return {"models": models} if models else {}


register_form(_RoundForm())
