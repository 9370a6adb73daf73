"""The pages of a study for the people in it: the door, each step of the way, and the ways out."""

from app.web.study import leaving, way
from app.web.study.blueprint import blueprint
from app.web.study.door import MTURK_HOSTS

__all__ = ["MTURK_HOSTS", "blueprint", "leaving", "way"]
