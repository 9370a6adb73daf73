"""The pages of a study for the people in it: how they come in, the page that is due, and how they leave."""

from app.web.study import entry, leaving, pages, survey_return
from app.web.study.blueprint import blueprint

__all__ = ["blueprint", "entry", "leaving", "pages", "survey_return"]
