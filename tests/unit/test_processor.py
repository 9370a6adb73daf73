"""Whether a processor has instructions for bfloat16, by what Linux says of it, and who is warned where it has none."""

import pytest

from training import processor

WITHOUT = "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu sse2 avx2 avx512f avx512bw\n"
WITH = WITHOUT.replace("avx512bw", "avx512bw avx512_bf16")
ARM = "processor\t: 0\nFeatures\t: fp asimd bf16\n"


@pytest.mark.parametrize(("cpuinfo", "lacks"), [(WITHOUT, True), (WITH, False), (ARM, False), ("model : z16\n", False)])
def test_only_a_processor_that_names_its_instructions_can_be_said_to_lack_them(cpuinfo: str, lacks: bool) -> None:
    assert processor.lacks_instructions(cpuinfo) is lacks


@pytest.mark.parametrize(
    ("precision", "device", "gpu", "warned"),
    [
        ("bfloat16", "auto", False, True),
        ("bfloat16", "None", False, True),
        ("bfloat16", "cpu", True, True),
        ("bfloat16", "auto", True, False),
        ("float32", "cpu", False, False),
        ("None", "auto", False, False),
    ],
)
def test_bfloat16_is_warned_of_where_such_a_processor_computes(
    monkeypatch: pytest.MonkeyPatch, precision: str, device: str, gpu: bool, warned: bool
) -> None:
    monkeypatch.setattr(processor, "lacks_bfloat16", lambda: True)
    monkeypatch.setattr(processor, "has_gpu", lambda: gpu)
    assert (processor.slow_precision(precision, device) is not None) is warned


def test_nothing_is_said_where_the_processor_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "lacks_bfloat16", lambda: False)
    assert processor.slow_precision("bfloat16", "cpu") is None
