"""Freed memory that the process keeps."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT

# 48 MB: above the 32 MB to which glibc raises its threshold by itself
FAULTS = """
import resource, sys, torch
from tartan.kernels.allocator import keep_freed_memory
torch.set_num_threads(1)
kept = keep_freed_memory() if sys.argv[1] == "keep" else None
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
torch.empty(12_000_000).fill_(1.0)
before = faults()
for _ in range(30):
    torch.empty(12_000_000).fill_(1.0)
print(kept, faults() - before)
"""


def page_faults(how, **more):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")} | more
    done = subprocess.run(
        [sys.executable, "-c", FAULTS, how],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    kept, number = done.stdout.split()
    return kept, int(number)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's allocator")
def test_large_tensors_reuse_memory_unless_the_environment_says_otherwise():
    kept, faults = page_faults("keep")
    if kept == "False":
        pytest.skip("the C library has no mallopt")
    assert faults < 0.5 * page_faults("leave")[1]
    assert page_faults("keep", MALLOC_ARENA_MAX="2")[0] == "False"
