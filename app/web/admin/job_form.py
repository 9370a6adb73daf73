"""The page that starts a job of a kind: its form made of the spec, its estimate, and the start.

A kind registers a subclass of JobForm, which says what is so for it alone.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, NamedTuple, NoReturn, TypeVar

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext
from sqlalchemy.orm import Session

from app.core.errors import AppError, Invalid, Phrase, either
from app.core.extensions import reading
from app.core.validation import whole_number
from app.games.base import JSON
from app.jobs.kind import LARGEST, JobKind, R, Requester
from app.jobs.spec import PRESET, JobSpec, fields_of, parts_of
from app.registry import SCRIPTED_CHATS, list_models
from app.registry.named import TRAINED, USES
from app.web.admin.blueprint import blueprint
from app.web.admin.game_fields import GAME
from app.web.admin.job_pages import job_address, pages_of, requester
from app.web.admin.spec_form import (
    ONE_TEXT,
    Form,
    files_of,
    filled_in,
    leaves,
    presets_of,
    refusal,
    sections,
    takes_material,
    typed,
    values_of,
)
from app.web.admin.uploaded_texts import AGAIN
from app.web.form_writes import write_once
from app.web.forms import RefusedField
from app.web.seats import settings
from app.web.translations import game_titles

S = TypeVar("S", bound=JobSpec)


class FormWords(NamedTuple):
    """What the page says, in lazy texts; the last two are of its estimate."""

    title: Any
    intro: Any
    start: Any
    back: Any
    estimate: Any = ""
    estimate_hint: Any = ""


class Asked(NamedTuple, Generic[S]):
    """What a form asks for: the spec, its texts by field, and what `check` gave."""

    spec: S
    files: JSON
    known: Any = None


class JobForm(Generic[R, S]):
    """The form of a kind."""

    kind: JobKind[R]
    spec: type[S]
    words: FormWords
    path: ClassVar[str] = ""  # of its pages, where that is not called as the kind is
    below: ClassVar[str] = ""  # a template with what the form says below its fields
    field: ClassVar[str] = ""  # at which a refusal is shown that is about none
    estimate_template: ClassVar[str] = ""

    # ---- What a kind says ----------------------------------------------------------

    def check(self, asked: Asked[S]) -> Any:
        """What has to be known before the transaction; `create` is given it. Raises AppError."""

    def create(self, session: Session, asked: Asked[S], by: Requester) -> R:
        """Write the job down, in the thread that writes, which has no request. Raises AppError."""
        raise NotImplementedError

    def create_all(self, session: Session, asked: Asked[S], by: Requester) -> Sequence[R]:
        """The same, of a kind whose form may ask for several jobs at once."""
        return [self.create(session, asked, by)]

    def address(self, numbers: Sequence[int]) -> str:
        """The page that shows the new jobs."""
        return job_address(self.kind, numbers[0])

    def agreement(self, expected: Any) -> str:
        """What a second press of the button agrees to."""
        return f"{expected.calls} calls"

    def excess(self, expected: Any) -> str:
        """Of what a job takes so much that the page asks before it is started: cost; empty where it just starts."""
        dearest = settings().CONFIRM_COST
        return "cost" if dearest and (expected.cost or 0) > dearest else ""

    def files_of(self, row: R) -> JSON:  # noqa: ARG002 - most kinds take no files
        """The texts that a job was given, by field."""
        return {}

    def spec_of(self, session: Session, row: R) -> JSON:  # noqa: ARG002 - a kind may have to look
        """The spec of a job as JSON. Raises Invalid for one that has none."""
        stored: JSON | None = row.spec
        return self.refuse_imported(row) if stored is None else self.spec.of_json(stored).to_json()

    def refuse_imported(self, row: R) -> NoReturn:
        """Raises Invalid."""
        expected, got = Phrase("one that was run here"), Phrase("one that was imported")
        raise Invalid("like", expected=expected, got=got, subject=self.kind.subject(row.id))

    def estimated(self, session: Session, asked: Asked[S]) -> Any:
        """What a job will take, for `estimate_template`: its `calls`, and its `cost` in USD if that is known."""

    def further(self) -> JSON:
        """What the template `below` is given."""
        return {}

    # ---- The page ------------------------------------------------------------------

    def begin(self) -> str:
        """The form, filled in with what the address names, or like a job that was."""
        with reading() as session:
            if number := request.args.get("like", ""):
                row = self.kind.get(session, whole_number(number, "like", 1, LARGEST))
                given = {**self.spec_of(session, row)}
                for name, schema in fields_of(self.spec).items():
                    if schema.get("once"):
                        given.pop(name, None)
                return self._page(session, {**filled_in(self.spec, given, files=AGAIN), "like": str(row.id)})
            plain = {each.name for each in leaves(self.spec) if len(each.path) == 1 and each.widget in ONE_TEXT}
            given = {name: text for name in plain if (text := request.args.get(name))}
            preset = ""
            if (fills := presets_of(self.spec)) is not None:
                part, argument, known = fills
                preset = request.args.get(argument) or known[0][0]
                if preset not in dict(known):
                    raise Invalid(argument, expected=either(dict(known)), got=preset)
                given[part] = parts_of(self.spec)[part].read({PRESET: preset}).model_dump(mode="json")
            models = list_models(session, archived=False)
            suggested = {SCRIPTED_CHATS[row.name]: row.name for row in models if row.name in SCRIPTED_CHATS}
            suggested[TRAINED] = next((row.name for row in models if USES[TRAINED](row)), "")
            form = filled_in(self.spec, self.suggested(session, given), known=suggested)
            return self._page(session, {**form, "like": ""}, preset)

    def suggested(self, session: Session, given: JSON) -> JSON:  # noqa: ARG002 - a kind may look at its models
        """The values with which the form is first shown, where the address names some."""
        return given

    def start(self) -> ResponseReturnValue:
        """Say what the job will take, or store it and call a worker, as the button says; or why it cannot be."""
        form = {**typed(self.spec), "like": _sent("like"), "agreed": _sent("agreed")}
        by = requester()
        try:
            with reading() as session:
                asked = self.read(session, form)
                expected = self.estimated(session, asked)
                estimates = _sent("action") == "estimate"
                agreed = estimates or expected is None or form["agreed"] == self.agreement(expected)
                excess = "" if agreed else self.excess(expected)
                if expected is not None and (estimates or excess):
                    return self._page(session, form, expected=expected, excess=excess)
            asked = asked._replace(known=self.check(asked))
            numbers = write_once(lambda session: [row.id for row in self.create_all(session, asked, by)])
        except (AppError, RefusedField) as error:
            refused = error if isinstance(error, RefusedField) else self.refusal(error, form)
            with reading() as session:
                return self._page(session, form, refused=refused), refused.error.status
        with reading() as session:
            queue = self.kind.queue_of(session, numbers[0])
        for number in numbers:
            self.kind.enqueue(settings().broker_url, number, queue=queue)
        return redirect(self.address(numbers), 303)

    def read(self, session: Session, form: Form) -> Asked[S]:
        """What a form asks for. Raises AppError and RefusedField."""
        again = None
        if form["like"]:
            row = self.kind.get(session, whole_number(form["like"], "like", 1, LARGEST))
            self.spec_of(session, row)
            again = self.files_of(row)
        files = files_of(self.spec, form, again)
        return Asked(self.spec.read(values_of(self.spec, form)), files)

    def refusal(self, error: AppError, form: Form) -> RefusedField:
        """An error at the field of the form that it is about."""
        found = refusal(self.spec, error, form)
        return found if found.field or not self.field else RefusedField(self.field, error)

    def _page(
        self,
        session: Session,
        form: Form,
        preset: str = "",
        *,
        refused: RefusedField | None = None,
        expected: Any = None,
        excess: str = "",
    ) -> str:
        fills = presets_of(self.spec)
        presets = None if fills is None else (gettext("Presets"), *fills[1:])
        if GAME in form:
            presets = (gettext("Game"), GAME, [*game_titles().items()])
        return render_template(
            "admin/job-form.html",
            form={**form, "agreed": self.agreement(expected) if excess else ""},
            kind=self.kind,
            pages=pages_of(self.kind),
            action=url_for(f"admin.start_{self.kind.name}"),
            words=self.words,
            sections=sections(session, self.spec, form),
            files=bool(self.spec.files) or takes_material(self.spec),
            presets=presets,
            preset=form.get(GAME, preset),
            refused=refused,
            expected=expected,
            excess=excess,
            dearest=settings().CONFIRM_COST,
            most=settings().CONFIRM_MATCHES,
            estimate_template=self.estimate_template,
            below=self.below,
            **self.further(),
        )


def register_form(form: JobForm[Any, Any]) -> None:
    """Add the page that starts jobs of a kind, below its list."""
    name, rule = form.kind.name, f"/{form.path or form.kind.plural}/new"
    blueprint.add_url_rule(rule, f"new_{name}", form.begin, methods=["GET"])
    blueprint.add_url_rule(rule, f"start_{name}", form.start, methods=["POST"])


def _sent(name: str) -> str:
    return request.form.get(name, "").strip()
