"""The device a person takes part with, as reported by the browser. Pure."""

from typing import Literal

from app.studies.design import StudyDesign

Device = Literal["desktop", "tablet", "phone"]
DESKTOP: Device = "desktop"
TABLET: Device = "tablet"
PHONE: Device = "phone"


def device_of(user_agent: str) -> Device:
    """The kind of device of a browser. One that asks for desktop pages, as an iPad does, is taken for a desktop."""
    if "iPad" in user_agent or "Tablet" in user_agent or ("Android" in user_agent and "Mobile" not in user_agent):
        return TABLET
    return PHONE if "Mobi" in user_agent or "iPhone" in user_agent else DESKTOP


def is_served(design: StudyDesign, device: str) -> bool:
    """Whether people may take part on such a device."""
    return device in design.devices
