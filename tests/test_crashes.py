"""Whoever writes the mirror is killed at each of its steps; what is left heals. `suites/crashes` does it longer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import crashing
import pytest


@pytest.mark.parametrize(
    ("steps", "hits"), [(crashing.OPEN, 1), (crashing.BATCH, 2), (crashing.BUILD, 1), ((crashing.ANY_TIME,), 4)]
)
def test_a_killed_mirror_heals(tmp_path, steps, hits):
    # Not from here: this process may have a graph open, which does not go with forking.
    script = Path(crashing.__file__)
    process = subprocess.run(
        [sys.executable, script, tmp_path, str(hits), *steps], capture_output=True, text=True, check=False
    )

    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout) == dict.fromkeys(steps, hits)
