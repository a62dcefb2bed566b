"""Rules about Python, torch and what else a Python holds."""

from __future__ import annotations

from hfbench.engines.compatibility.rule import Case, Row, mismatch, ok, rule, unknown
from hfbench.engines.versions import older, same

TORCH = ("aoti", "compile")
REBUILD = "build it again with what is installed here"
TRY = "try it with --load"


@rule(
    "python",
    "built_on.python",
    "a compile cache holds pickled objects of Python, which nobody promises to read in another minor version; packages "
    "and plans hold nothing of Python",
    builders=("compile",),
)
def python(case: Case) -> Row:
    """The minor version of Python is the same."""
    built, here = case.built.python, case.here.versions.python
    if same(built, here, 2):
        return ok(built, here)
    found = f"the cache was made by Python {built}, this is {here}, and its key does not tell them apart"
    return unknown(built, here, found, TRY)


@rule(
    "torch",
    "built_on.torch",
    "a package calls torch by a C interface that newer versions are to keep and older ones may lack; a compile cache "
    "is keyed by the exact torch",
    builders=TORCH,
)
def torch(case: Case) -> Row:
    """torch is one that can read it."""
    built, here = case.built.torch, case.here.versions.torch
    if absent := _absent("torch", built, here, "torch"):
        return absent
    if not built:
        return unknown("not told", here, "nothing tells the torch it was built with", TRY)
    if built == here or (case.manifest.builder == "aoti" and same(built, here, 2)):
        return ok(built, here)
    if case.manifest.builder == "compile":
        found = f"the cache was made by torch {built}, this is {here}: none of it would be found"
        return mismatch(built, here, found, REBUILD)
    if older(here, built, 2):
        found = f"it was built with torch {built} and may call what torch {here} lacks"
        return mismatch(built, here, found, f"install torch {built} or newer, or build it again")
    found = f"it was built with torch {built}; torch {here} is to keep its interface, which nobody here has tried"
    return unknown(built, here, found, TRY)


@rule("torch-abi", "built_on.abi", "code that hands C++ strings to torch needs torch's own C++ ABI", builders=TORCH)
def torch_abi(case: Case) -> Row | None:
    """torch's C++ ABI is the same."""
    built, here = case.built.abi, case.here.versions.abi
    if not built or not case.here.versions.torch:
        return None
    if built == here:
        return ok(built, here)
    if not here:
        return unknown(built, "not told", "this torch tells its C++ ABI only when it is imported", TRY)
    return mismatch(built, here, f"it was built for the C++ ABI {built}, this torch has {here}", REBUILD)


@rule("triton", "built_on.triton", "a compile cache for a GPU is keyed by the exact Triton", builders=("compile",))
def triton(case: Case) -> Row | None:
    """Triton is the same."""
    built, here = case.built.triton, case.here.versions.triton
    if not case.on_gpu:
        return None
    if built == here:
        return ok(built, here)
    found = f"the cache was made with Triton {built or 'none'}, here is {here or 'none'}: none of it would be found"
    return mismatch(built, here, found, REBUILD)


@rule(
    "transformers",
    "built_on.transformers",
    "a compile cache is keyed by the traced graph, which another transformers may write otherwise",
    builders=("compile",),
)
def transformers(case: Case) -> Row | None:
    """transformers is the same."""
    built, here = case.built.transformers, case.here.versions.transformers
    if not built:
        return None
    if absent := _absent("transformers", built, here, "torch"):
        return absent
    if built == here:
        return ok(built, here)
    found = f"the cache was made with transformers {built}, here is {here}: where the graph differs nothing is found"
    return unknown(built, here, found, TRY)


@rule(
    "onnxruntime",
    "built_on.onnxruntime",
    "ONNX Runtime reads models of older versions, and of newer ones as far as it knows their operators",
    builders=("onnx",),
)
def onnxruntime(case: Case) -> Row:
    """ONNX Runtime is there and not older."""
    return _reads_older("ONNX Runtime", "onnx", case.built.onnxruntime, case.here.versions.onnxruntime)


@rule(
    "openvino",
    "built_on.openvino",
    "OpenVINO reads models of older versions, and of newer ones as far as it knows their operators",
    builders=("openvino",),
)
def openvino(case: Case) -> Row:
    """OpenVINO is there and not older."""
    return _reads_older("OpenVINO", "openvino", case.built.openvino, case.here.versions.openvino)


def _reads_older(name: str, extra: str, built: str, here: str) -> Row:
    if absent := _absent(name, built, here, extra):
        return absent
    if not built:
        return unknown("not told", here, f"nothing tells the {name} it was proved with", TRY)
    if not older(here, built, 3):
        return ok(built, here)
    found = f"it was built with {name} {built}, here is the older {here}, which may lack operators of it"
    return unknown(built, here, found, f"try it with --load, or install {name} {built}")


def _absent(name: str, built: str, here: str, extra: str) -> Row | None:
    if here:
        return None
    install = f"pip install 'hfbench[{extra}]'"
    return mismatch(built, "not installed", f"{name} is not installed here", f"{install}, or name an --environment")
