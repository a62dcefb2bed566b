"""`hfbench.gpu.kernel`: the page's program runs, and what is decorated is an operator that torch accepts."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kernel_files import COPY, write

from hfbench.gpu.kernels.choosing import Chooser, NoConfiguration, neighbours
from hfbench.gpu.kernels.declaration import Kernel
from hfbench.gpu.kernels.dropin import DropIn
from hfbench.gpu.kernels.loading import BrokenKernel, load, read
from hfbench.gpu.kernels.tuned import Choice, Key, TunedRow, bucket_of, save

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

PAGE = (Path(__file__).parents[3] / "docs" / "kernels.md").read_text(encoding="utf-8")
_, FILE, PROGRAM = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(PRINTED,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)


def decorated(name: str) -> str:
    """The page's file, its function and file under another name."""
    return FILE.replace("scaled_silu", name)


def run(folder: Path, name: str, text: str) -> Any:
    """The module of a file, as a program that imports it gets it."""
    path = write(folder, text, name=f"{name}.py")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def silu(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The function on the page, called `drop_silu`."""
    return run(tmp_path_factory.mktemp("silu"), "drop_silu", decorated("drop_silu")).drop_silu


def test_the_program_on_the_page_runs_as_it_is(tmp_path: Path) -> None:
    write(tmp_path, FILE, name="scaled_silu.py")
    program = write(tmp_path, PROGRAM, name="program.py")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, cwd=tmp_path, timeout=250)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == PRINTED


def test_the_file_on_the_page_is_right(silu: DropIn) -> None:
    rows = silu.check(config="BLOCK=1024").rows
    assert [row.verdict for row in rows] == ["ok"] * 6, rows


def test_the_decorator_is_there_without_torch() -> None:
    told = "import sys; from hfbench.gpu import kernel; print(callable(kernel), *sys.modules)"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("True ")
    assert not {"torch", "triton", "numpy"} & set(done.stdout.split())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_on_the_cpu_it_is_the_reference_at_the_type_of_the_output(silu: DropIn, dtype: Any) -> None:
    x = torch.randn(5, 7).to(dtype)
    expected = x.float() * x.float().sigmoid() * 0.5
    assert torch.equal(silu(x, 0.5), expected.to(dtype))
    assert torch.equal(silu(x, scale=0.5), silu(x=x, scale=0.5))
    assert torch.equal(silu(x), silu(x, 1.0)), "the default is that of the reference"


def test_torch_accepts_the_operator(silu: DropIn) -> None:
    told = torch.library.opcheck(silu.op, (torch.randn(3, 4), 0.5))
    assert set(told.values()) == {"SUCCESS"}


def test_fake_tensors_have_its_shapes(silu: DropIn) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        y = silu(torch.empty(3, 4, device="cuda", dtype=torch.float16))
    assert (tuple(y.shape), y.dtype, y.device.type) == ((3, 4), torch.float16, "cuda")
    assert silu(torch.empty(2, 9, device="meta")).shape == (2, 9)


class Captured(Exception):
    """What a compiler was given."""


def test_a_graph_for_a_gpu_holds_the_triton_function(silu: DropIn) -> None:
    from torch._functorch.aot_autograd import aot_function
    from torch._subclasses.fake_tensor import FakeTensorMode

    def compiler(graph: Any, inputs: Any) -> Any:
        raise Captured(str(graph.graph))

    graphs = {}
    for device in ("cuda", "cpu"):
        with FakeTensorMode(), pytest.raises(Captured) as caught:
            aot_function(lambda x: silu(x, 0.5), fw_compiler=compiler)(torch.empty(3, 4, device=device))
        graphs[device] = str(caught.value)
    assert "triton_kernel_wrapper_functional" in graphs["cuda"]
    assert "sigmoid" not in graphs["cuda"]
    assert "sigmoid" in graphs["cpu"]
    assert "triton" not in graphs["cpu"]


@pytest.mark.parametrize(("interpret", "printed"), [("1", "kernel"), ("", "reference")])
def test_the_interpreter_runs_the_function_itself(tmp_path: Path, interpret: str, printed: str) -> None:
    spoiled = FILE.replace("return wide * wide.sigmoid() * scale", "return wide * 0")
    write(tmp_path, spoiled, name="scaled_silu.py")
    code = (
        "import torch; from scaled_silu import scaled_silu; x = torch.randn(4, 300);"
        "y, silu = scaled_silu(x), torch.nn.functional.silu(x);"
        "print('reference' if not y.any() else 'kernel' if torch.allclose(y, silu, atol=1e-6) else 'neither')"
    )
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"TRITON_INTERPRET": interpret} if interpret else {}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=200
    )
    assert done.stdout.strip() == printed, done.stderr[-2000:]


AXPY = """
from hfbench.gpu import kernel


@kernel(
    inputs=lambda case: {"x": case.normal(case["N"]), "y": case.normal(case["N"]), "a": 0.5},
    arguments=lambda x, y, a: {"x": x, "y": y, "a": a, "size": x.numel()},
    outputs=("y",),
    reference=REFERENCE,
    grid=lambda given, constants: (triton.cdiv(given["size"], constants["BLOCK"]),),
    signature={"x": "*T:16", "y": "*T:16", "a": "fp32", "size": "i32"},
    configs=(Config(constants={"BLOCK": 64}),),
    shapes=({"N": 100},),
    dtypes=("fp32",),
    tolerance={"fp32": Tolerance(1e-6, 1e-6)},
    bytes_moved=lambda case: 12 * case["N"],
    flops=lambda case: 2 * case["N"],
    MORE
)
@triton.jit
def NAME(x, y, a, size, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < size
    tl.store(y + place, tl.load(y + place, mask=inside) + a * tl.load(x + place, mask=inside), mask=inside)
"""
IMPORTS = COPY[: COPY.index("@triton.jit")]
REFERENCE = "def right(x, y, a: float):\n    return a * x.double() + y.double()\n\n"


def axpy(name: str, *, reference: str = "right", more: str = "", before: str = REFERENCE) -> str:
    text = AXPY.replace("NAME", name).replace("REFERENCE", reference).replace("MORE", more)
    return f"{IMPORTS}{before}{text}"


def test_an_output_that_is_an_input_is_changed_in_place(tmp_path: Path) -> None:
    add = run(tmp_path, "in_place", axpy("in_place_kernel")).in_place_kernel
    assert str(add.op._schema) == "hfbench::in_place(Tensor x, Tensor(a1!) y, float a) -> ()"
    x, y = torch.ones(5), torch.arange(5.0)
    assert add(x, y, 2.0) is None
    assert y.tolist() == [2, 3, 4, 5, 6]
    assert set(torch.library.opcheck(add.op, (x, y, 2.0)).values()) == {"SUCCESS"}


def test_a_gradient_is_there_once_somebody_wrote_it(tmp_path: Path) -> None:
    silu = run(tmp_path, "grad_silu", decorated("grad_silu")).grad_silu
    x = torch.randn(3, 4, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"hfbench\.grad_silu\.default but no autograd formula"):
        silu(x, 1.0).sum().backward()

    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        return grad * s * (1 + x * (1 - s)), None

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])

    torch.library.register_autograd(silu.operator, backward, setup_context=keep)
    silu(x, 1.0).sum().backward()
    (expected,) = torch.autograd.grad(torch.nn.functional.silu(x).sum(), x)
    torch.testing.assert_close(x.grad, expected)


@pytest.mark.parametrize("name", ["add_rmsnorm", "rope", "penalties"])
def test_kernels_of_the_library_are_operators_too(name: str) -> None:
    declared = importlib.import_module(f"hfbench.gpu.kernels.library.{name}").KERNEL
    case = declared.shapes[2]
    fields = {key: value for key, value in vars(declared).items() if key != "fn"}
    from hfbench.gpu import kernel
    from hfbench.gpu.kernels.declaration import Case

    op = kernel(**fields, operator=f"tests::{name}")(declared.fn)
    inputs = dict(declared.inputs(Case(shape=case, dtype="fp16")))
    found, expected = op(**inputs), declared.reference(**inputs)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for one, other in pairs:
        assert torch.equal(one, other.half())
    told = torch.library.opcheck(op.op, (), inputs, test_utils=("test_schema", "test_faketensor"))
    assert set(told.values()) == {"SUCCESS"}
    if name == "penalties":
        with pytest.raises(ValueError, match="the output 'y' is the input 'logits'; let both have one name"):
            op(**{**inputs, "in_place": True})


def choice(label: str = "tuned", block: int = 4096) -> TunedRow:
    chosen = Choice(label=label, constants={"BLOCK": block}, num_warps=2, num_stages=1, options={"maxnreg": 64})
    return TunedRow(choice=chosen, shape={}, bench="cuda", verdict="ok", seconds=1.0)


def key_of(path: Path, shape: dict[str, int]) -> Key:
    return Key(
        kernel="tuned_silu",
        source=read(path).digest,
        triton=triton.__version__,
        capability="9.0",
        dtype="fp16",
        bucket=bucket_of(shape),
    )


def test_the_tuned_configuration_is_taken_where_all_of_its_key_holds(tmp_path: Path) -> None:
    silu = run(tmp_path, "tuned_silu", decorated("tuned_silu")).tuned_silu
    assert silu.tuned == tmp_path / "tuned_silu.tuned.json"
    first = silu.configs[0]
    half, wide = (silu.arguments(torch.empty(3, 1000, dtype=kind), 1.0) for kind in (torch.float16, torch.float32))
    shape = silu.shape_of(half["x"], 1.0)
    assert Chooser(silu, silu.file, silu.tuned).choose(half, shape, "9.0") == first, "there is no file yet"
    save(silu.tuned, key_of(silu.file, shape), [choice()])
    chooser = Chooser(silu, silu.file, silu.tuned)
    found = chooser.choose(half, shape, "9.0")
    assert (found.constants, found.num_warps, found.num_stages) == ({"BLOCK": 4096}, 2, 1)
    assert found.options == {"maxnreg": 64}
    assert chooser.choose(half, {"R": 4, "C": 1024}, "9.0") == found, "the same bucket"
    for given, sizes, capability in (
        (half, {"R": 5, "C": 1000}, "9.0"),
        (half, shape, "9.1"),
        (half, shape, ""),
        (half, None, "9.0"),
        (wide, shape, "9.0"),
    ):
        assert chooser.choose(given, sizes, capability) == first
    silu.file.write_text(silu.file.read_text() + "\n# changed\n")
    assert Chooser(silu, silu.file, silu.tuned).choose(half, shape, "9.0") == first, "another source"


def test_a_damaged_file_of_tuned_configurations_is_a_warning(tmp_path: Path) -> None:
    silu = run(tmp_path, "damaged_silu", decorated("damaged_silu")).damaged_silu
    silu.tuned.write_text("{")
    given = silu.arguments(torch.empty(3, 1000), 1.0)
    chooser = Chooser(silu, silu.file, silu.tuned)
    with pytest.warns(UserWarning, match=r"is no file of tuned configurations.*runs untuned"):
        assert chooser.choose(given, {"R": 3, "C": 1000}, "9.0") == silu.configs[0]


def test_a_problem_no_configuration_can_serve_is_told(tmp_path: Path) -> None:
    silu = run(tmp_path, "never_silu", decorated("never_silu")).never_silu
    never = Kernel(
        **{
            **{key: value for key, value in vars(silu).items() if key in Kernel.__dataclass_fields__},
            "applies": lambda given, constants: False,
        }
    )
    with pytest.raises(NoConfiguration, match="never_silu: no configuration can serve a problem of this size"):
        Chooser(never, silu.file, None).choose({}, None, "")


def test_neighbours_are_those_that_loading_tells(tmp_path: Path) -> None:
    write(tmp_path, "from drop_b import size\n", name="drop_a.py")
    write(tmp_path, "size = 1\n", name="drop_b.py")
    write(tmp_path / "drop_pack", "", name="__init__.py")
    write(tmp_path / "drop_pack", "more = 2\n", name="inner.py")
    text = COPY.replace("import triton\n", "import drop_a\nimport triton\n\nfrom drop_pack import inner\n", 1)
    path = write(tmp_path, text)
    _, told = load(path)
    assert {Path(each).name for each in told} == {"drop_a.py", "drop_b.py", "__init__.py", "inner.py"}
    assert neighbours(path) == told


@pytest.mark.parametrize(
    ("more", "before", "said"),
    [
        ("operator='nothing',", REFERENCE, "'nothing' is no name of an operator; write for example mine::"),
        ("tuned='x.json',", REFERENCE, "tuned needs shape_of"),
        ("nonsense=1,", REFERENCE, "unexpected keyword argument 'nonsense'"),
        ("", "def right(x, y, *a):\n    return x\n", "reference: 'a' is no parameter of its own"),
        ("", "def right(x, y, a: complex):\n    return x\n", "reference: 'a' is a complex; an operator takes Tensor"),
    ],
)
def test_what_does_not_fit_is_told_when_the_file_is_run(tmp_path: Path, more: str, before: str, said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(said)):
        run(tmp_path, "unfit", axpy("unfit", more=more, before=before))


def test_two_files_cannot_have_one_operator(tmp_path: Path) -> None:
    run(tmp_path / "one", "same", axpy("same"))
    run(tmp_path / "one", "same", axpy("same"))
    with pytest.raises(
        ValueError, match=r"hfbench::same is a kernel of .*one/same\.py; give this one operator='mine::"
    ):
        run(tmp_path / "two", "same", axpy("same"))
    assert run(tmp_path / "two", "same", axpy("same", more="operator='mine::same',")).same.operator == "mine::same"


def test_a_reference_of_another_shape_is_told(tmp_path: Path) -> None:
    add = run(tmp_path, "shapes", axpy("shapes", reference="lambda x, y, a: x.sum()", before="")).shapes
    with pytest.raises(ValueError, match=r"shapes: y has the shape \(5,\), the reference \(\)"):
        add.op(torch.ones(5), torch.ones(5), torch.ones(1))


def test_a_file_with_one_decorated_function_needs_no_KERNEL(tmp_path: Path) -> None:  # noqa: N802
    kernel, _ = load(write(tmp_path, axpy("lone"), name="lone.py"))
    assert kernel.name == "lone"
    assert "op" not in vars(kernel), "who only reads makes no operator"
    twice = axpy("lone") + AXPY.replace("NAME", "other").replace("REFERENCE", "right").replace("MORE", "")
    with pytest.raises(BrokenKernel, match=r"declares lone, other\. Call the one that is meant KERNEL"):
        load(write(tmp_path, twice, name="both.py"))
    assert load(write(tmp_path, f"{twice}\nKERNEL = other\n", name="meant.py"))[0].name == "other"
    user = write(tmp_path, f"from lone import lone\n{axpy('mine')}", name="user.py")
    assert load(user)[0].name == "mine", "what is imported is declared elsewhere"
