"""Performs engine.build for each set of fields in argv, and prints exit codes with what was told."""

import json
import sys

from hfbench.actions.engine_build import EngineBuild
from hfbench.errors import HfbenchError
from hfbench.jobs.run import Run


def built(values):
    """The exit code and either the phases of the build or the parts of its error."""
    told = []
    try:
        EngineBuild.spec.build(values).perform(Run(told.append))
    except HfbenchError as error:
        return int(error.exit), error.parts()
    return 0, {"phases": [each.phase for each in told if each.kind == "progress"]}


print(json.dumps([built(values) for values in json.loads(sys.argv[1])]))
