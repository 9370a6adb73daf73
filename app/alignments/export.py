"""An alignment as a recipe file, which asks the same questions wherever it is run."""

import json

from sqlalchemy.orm import Session

from app.alignments.recipe import document_of
from app.alignments.spec import AlignmentSpec
from app.alignments.steps import has_rated_demonstrations
from app.models import Alignment
from app.recipes.export import written_recipe

_QUESTIONS, _PRIORS, _HELD_OUT = "questions.json", "priors.json", "held-out.json"
_NAMED = {"society": {"questions": _QUESTIONS, "priors": _PRIORS}, "assessment": {"questions": _HELD_OUT}}


def recipe_archive(session: Session, row: Alignment) -> bytes:
    """A zip archive with an alignment's recipe and the files of its questions and first memories."""
    spec = AlignmentSpec.of_json(row.spec)
    document = document_of(spec, row.name, rated=has_rated_demonstrations(session, spec))
    for step in document["steps"]:
        step["with"].update(_NAMED.get(step["do"], {}))
    priors = {
        label: [{"question": question, "answer": answer} for question, answer in pairs]
        for label, pairs in row.material["priors"][1].items()
    }
    files = {_QUESTIONS: row.material["questions"][1], _PRIORS: priors, _HELD_OUT: row.material["held_out"][1]}
    texts = {name: json.dumps(found, ensure_ascii=False, indent=1) + "\n" for name, found in files.items()}
    return written_recipe(row.name, f"The steps of alignment {row.id}, {row.name}.", document, texts)
