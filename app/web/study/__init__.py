"""The pages of a study for the people in it: the door, each step of the way, and the ways out."""

from app.web.study import coming_back, door, leaving, way
from app.web.study.blueprint import blueprint

__all__ = ["blueprint", "coming_back", "door", "leaving", "way"]
