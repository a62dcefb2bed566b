"""What a job ran on is what its user set, and not what hfbench made of it."""

from __future__ import annotations

import os

import pytest

from hfbench.gpu.generate_model import stay_offline
from hfbench.jobs import fingerprint


@pytest.mark.parametrize("told", [None, "0"])
def test_a_variable_that_hfbench_set_is_told_as_the_user_left_it(
    told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "CUDA_DEVICE_ORDER"):
        monkeypatch.setenv(name, told or "")
        if told is None:
            monkeypatch.delenv(name)
    monkeypatch.setattr(fingerprint, "_TOLD_AS", {})
    stay_offline()
    stay_offline()
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    assert fingerprint.fingerprint()["variables"].get("HF_HUB_OFFLINE") == told
