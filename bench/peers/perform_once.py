"""Performs an action in this process: `perform_once.py NAME FIELDS`; prints CPU seconds and peak memory as JSON."""

import json
import resource
import sys

from hfbench.actions.registry import find
from hfbench.jobs.run import Run

result = find(sys.argv[1]).build(json.loads(sys.argv[2])).perform(Run())
if getattr(result, "failed", False):
    sys.exit(f"{sys.argv[1]} failed: {result.headline}")
usage = resource.getrusage(resource.RUSAGE_SELF)
with open("/proc/self/status") as lines:  # ru_maxrss begins with the memory of the process that started this one
    peak = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
print(json.dumps({"cpu": usage.ru_utime + usage.ru_stime, "peak": peak}))
