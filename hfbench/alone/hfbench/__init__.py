"""hfbench, found by a path on which nothing that is installed beside it can be found."""

from pathlib import Path

_package = Path(__file__).resolve().parents[2]
__path__[:] = [str(_package)]
__file__ = str(_package / "__init__.py")
exec(compile((_package / "__init__.py").read_text(encoding="utf-8"), __file__, "exec"))
