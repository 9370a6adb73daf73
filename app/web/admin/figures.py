"""Figures as files: a page sends back a spec it got from this server and gets the SVG, PDF or PNG that commands make.

Specs are signed when they are sent, so that only specs made here are drawn.
"""

import json
from typing import Any

from flask import Response, current_app, jsonify, request
from gevent.lock import BoundedSemaphore
from itsdangerous import Signer

from app.analysis.chart import Chart
from app.analysis.figure_files import FORMATS, TYPES, draw_in_process
from app.analysis.themes import LIGHT, THEMES
from app.core.errors import Invalid, NotFound, Phrase, Verbatim, either
from app.web.admin.blueprint import blueprint
from app.web.forms import one_of

SIGNATURE = "Figure-Signature"  # the header for a spec with an address
_LONGEST = 300  # characters of a title or a name
_one_at_a_time = BoundedSemaphore(1)  # each draws in its own process


@blueprint.app_template_global()
def figure_signature(specs: str) -> str:
    """The signature of the text of a spec, or of the set of one spec for each theme."""
    return _signer().get_signature(specs.strip()).decode()


def spec_answer(chart: Chart) -> Response:
    """A chart as a Vega-Lite spec, signed, in the colours of `theme`: light or dark. Raises Invalid."""
    answer = jsonify(chart.spec(request.args.get("theme", LIGHT), titled=False))
    answer.headers[SIGNATURE] = figure_signature(answer.get_data(as_text=True))
    return answer


@blueprint.post("/figures/<form>")
def save_figure(form: str) -> Response:
    """A figure of a page as a file.

    Fields: `specs` and its `signature`, both as the page got them; `theme`, which selects one of two specs; `title`;
    and `parameter-NAME`, a number, for each parameter of the spec that the page has changed.
    """
    if form not in FORMATS:
        raise NotFound("format", expected=either(FORMATS), got=form)
    # Browsers end the lines of a field with \r\n, and a server in development sends specs of several lines.
    specs = request.form.get("specs", "").strip().replace("\r\n", "\n")
    signature = request.form.get("signature", "")
    if not _signer().verify_signature(specs.encode(errors="replace"), signature.encode(errors="replace")):
        raise Invalid(
            "specs",
            expected=Phrase("a figure of this server"),
            got=Verbatim("another"),
            remedy=Phrase("reload the page"),
        )
    spec = json.loads(specs)
    if THEMES[0] in spec:
        spec = spec[one_of("theme", {"theme": LIGHT, **request.form.to_dict()}, THEMES)]
    title = request.form.get("title", "")[:_LONGEST]
    params = [_parameter_with_sent_value(each) for each in spec.get("params", [])]
    given = {**spec, **({"title": title} if title else {}), **({"params": params} if params else {})}
    with _one_at_a_time:
        content = draw_in_process(given, form)
    return Response(content, mimetype=TYPES[form])


def _parameter_with_sent_value(parameter: dict[str, Any]) -> dict[str, Any]:
    """A parameter of a spec, set to the number that the page sent for it."""
    given = request.form.get(f"parameter-{parameter['name']}", type=float)
    return parameter if given is None else {**parameter, "value": given}


def _signer() -> Signer:
    return Signer(str(current_app.secret_key), salt="parlor.figure")
