"""On what a person takes part, by what browsers say of themselves."""

import pytest

from app.studies.devices import device_of, is_served
from tests.waves import loaded_study

_MOZILLA = "Mozilla/5.0"


@pytest.mark.parametrize(
    ("user_agent", "device"),
    [
        (f"{_MOZILLA} (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "desktop"),
        (
            f"{_MOZILLA} (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.0 Safari/605.1.15",
            "desktop",
        ),
        (f"{_MOZILLA} (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile/15E148 Safari/604.1", "phone"),
        (f"{_MOZILLA} (Linux; Android 10; K) AppleWebKit/537.36 Chrome/140.0.0.0 Mobile Safari/537.36", "phone"),
        (f"{_MOZILLA} (Linux; Android 10; K) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36", "tablet"),
        (f"{_MOZILLA} (iPad; CPU OS 12_5 like Mac OS X) Version/12.1 Mobile/15E148 Safari/604.1", "tablet"),
        (f"{_MOZILLA} (Android 14; Tablet; rv:140.0) Gecko/140.0 Firefox/140.0", "tablet"),
        ("", "desktop"),
    ],
)
def test_a_browser_tells_its_device(user_agent: str, device: str) -> None:
    assert device_of(user_agent) == device


def test_a_design_serves_the_devices_that_it_names() -> None:
    design = loaded_study("taboo-roles").design
    assert [is_served(design, each) for each in ("desktop", "tablet", "phone")] == [True, True, False]
