"""A page that asks for what a spec describes: its form, its estimate, and making it."""

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from flask import redirect, render_template, request
from flask.typing import ResponseReturnValue
from flask_babel import gettext
from sqlalchemy.orm import Session

from app.core.errors import AppError, Invalid, Phrase, either
from app.core.extensions import reading
from app.games.base import JSON
from app.jobs.spec import PRESET, JobSpec, fields_of, parts_of
from app.registry import SCRIPTED_CHATS, list_models
from app.registry.named import TRAINED, USES
from app.web.admin.game_fields import GAME
from app.web.admin.spec_form import (
    Form,
    asks_for,
    files_of,
    filled_in,
    in_address,
    presets_of,
    refusal,
    sections,
    takes_files,
    typed,
    values_of,
)
from app.web.admin.uploaded_texts import AGAIN
from app.web.forms import RefusedField
from app.web.seats import settings
from app.web.translations import game_titles

S = TypeVar("S", bound=JobSpec)
_PREVIEW = "preview"  # an estimate that the page itself asks for, of a form that may be incomplete, which is no error


class FormWords(NamedTuple):
    """The lazy texts of the page; the last two are those of its estimate."""

    title: Any
    intro: Any
    start: Any
    back: Any
    estimate: Any = ""
    estimate_hint: Any = ""


class Asked(NamedTuple, Generic[S]):
    """What a form asks for: the spec, and its texts by field."""

    spec: S
    files: JSON


class Link(NamedTuple):
    """The title and address of a page."""

    title: Any
    address: str


class SpecPage(Generic[S]):
    """The page of one spec. A subclass adds what is specific to it."""

    spec: type[S]
    words: FormWords
    template: ClassVar[str] = "admin/job-form.html"
    below: ClassVar[str] = ""  # a template for what follows the form's fields
    field: ClassVar[str] = ""  # the field for errors about no field
    estimate_template: ClassVar[str] = ""
    published: ClassVar[Mapping[str, Any]] = {}  # settings that the address may name: each with a title and a summary

    # ---- What a subclass says --------------------------------------------------------

    def listed(self) -> Link:
        """The list that shows what was made."""
        raise NotImplementedError

    def action(self) -> str:
        """The address that the form is sent to."""
        raise NotImplementedError

    def make(self, asked: Asked[S]) -> str:
        """Make what was requested and return the address that shows it. Raises AppError and RefusedField."""
        raise NotImplementedError

    def earlier(self, session: Session, number: str) -> tuple[Link, JSON, JSON]:  # noqa: ARG002 - most have some
        """An earlier result by its number: its page, its spec as JSON, and its texts by field.

        Raises AppError if there is none, or if it was not requested in such a form.
        """
        raise Invalid("like", expected=Phrase("none"), got=number)

    def agreement(self, expected: Any) -> str:
        """What a second press of the button agrees to."""
        return f"{expected.calls} calls"

    def excess(self, expected: Any) -> str:
        """The quantity so large that the page asks for confirmation: cost; empty if it can start at once."""
        dearest = settings().CONFIRM_COST
        return "cost" if dearest and (expected.cost or 0) > dearest else ""

    def estimated(self, session: Session, asked: Asked[S]) -> Any:
        """The expected effort, for `estimate_template`: its `calls`, and its `cost` in USD if that is known."""

    def further(self) -> JSON:
        """Further values for the template, or for the one `below`."""
        return {}

    def suggested(self, session: Session, given: JSON) -> JSON:  # noqa: ARG002 - a kind may look at its models
        """The initial values of the form, given those that the URL names."""
        return given

    # ---- The page ------------------------------------------------------------------

    def begin(self) -> str:
        """The form, filled in from the URL or from an earlier result."""
        with reading() as session:
            if number := request.args.get("like", ""):
                _, spec, _ = self.earlier(session, number)
                once = [name for name, schema in fields_of(self.spec).items() if schema.get("once")]
                given = {name: value for name, value in spec.items() if name not in once}
                return self.page(session, {**filled_in(self.spec, given, files=AGAIN), "like": number})
            given, preset = in_address(self.spec), ""
            if (fills := presets_of(self.spec)) is not None:
                part, argument, known = fills
                preset = request.args.get(argument) or known[0][0]
                if preset not in dict(known):
                    raise Invalid(argument, expected=either(dict(known)), got=preset)
                given[part] = parts_of(self.spec)[part].read({PRESET: preset}).model_dump(mode="json")
            return self.page(session, self._first_form(session, given), preset)

    def _first_form(self, session: Session, given: JSON) -> JSON:
        models = list_models(session, archived=False)
        suggested = {SCRIPTED_CHATS[row.name]: row.name for row in models if row.name in SCRIPTED_CHATS}
        suggested[TRAINED] = next((row.name for row in models if USES[TRAINED](row)), "")
        return {**filled_in(self.spec, self.suggested(session, given), known=suggested), "like": ""}

    def start(self) -> ResponseReturnValue:
        """Show the estimate or make the result, depending on the pressed button; or show why it cannot be made."""
        form = {**typed(self.spec), "like": _sent_form_value("like"), "agreed": _sent_form_value("agreed")}
        action = _sent_form_value("action")
        try:
            with reading() as session:
                asked = self.read(session, form)
                expected = self.estimated(session, asked)
                estimates = action in {"estimate", _PREVIEW}
                agreed = estimates or expected is None or form["agreed"] == self.agreement(expected)
                excess = "" if agreed else self.excess(expected)
                if estimates or excess:
                    return self.page(session, form, expected=expected, excess=excess)
            address = self.make(asked)
        except (AppError, RefusedField) as error:
            refused = error if isinstance(error, RefusedField) else self.refusal(error, form)
            with reading() as session:
                return self.page(session, form, refused=refused), 200 if action == _PREVIEW else refused.error.status
        return redirect(address, 303)

    def refused(self, error: AppError) -> str:
        """The initial form, with an error about what could not be read."""
        with reading() as session:
            form = self._first_form(session, {})
            return self.page(session, form, refused=self.refusal(error, form))

    def read(self, session: Session, form: Form) -> Asked[S]:
        """What a form asks for. Raises AppError and RefusedField."""
        again = self.earlier(session, form["like"])[2] if form["like"] else None
        files = files_of(self.spec, form, again)
        return Asked(self.spec.read(self.values(form)), files)

    def values(self, form: Form) -> JSON:
        """The values of a form for `read` of the spec. Raises Invalid."""
        return values_of(self.spec, form)

    def refusal(self, error: AppError, form: Form) -> RefusedField:
        """An error, placed at the form field that it is about."""
        found = refusal(self.spec, error, form)
        return found if found.field or not self.field else RefusedField(self.field, error)

    def page(
        self,
        session: Session,
        form: Form,
        preset: str = "",
        *,
        refused: RefusedField | None = None,
        expected: Any = None,
        excess: str = "",
    ) -> str:
        """The page with the form as it was typed."""
        fills = presets_of(self.spec)
        presets = None if fills is None else (gettext("Presets"), *fills[1:])
        of_game = asks_for(self.spec, GAME)
        if of_game:
            presets = (gettext("Game"), GAME, [*game_titles().items()])
        return render_template(
            self.template,
            form={**form, "agreed": self.agreement(expected) if excess else ""},
            listed=self.listed(),
            like=self._like(session, form),
            action=self.action(),
            words=self.words,
            sections=sections(session, self.spec, form),
            files=takes_files(self.spec),
            presets=presets,
            preset=form[GAME] if of_game else preset,
            published=self.published,
            refused=refused,
            expected=expected,
            excess=excess,
            dearest=settings().CONFIRM_COST,
            most=settings().CONFIRM_MATCHES,
            estimate_template=self.estimate_template,
            below=self.below,
            **self.further(),
        )

    def _like(self, session: Session, form: Form) -> Link | None:
        try:
            return self.earlier(session, form["like"])[0] if form["like"] else None
        except AppError:
            return None


def _sent_form_value(name: str) -> str:
    return request.form.get(name, "").strip()
