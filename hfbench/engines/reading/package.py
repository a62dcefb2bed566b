"""AOTInductor packages: the metadata beside the code, and what the code asks of the machine. Nothing is loaded."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

from hfbench.engines.manifest import BuiltOn, GpuBuilt
from hfbench.engines.reading.elf import Elf, ElfError, read_elf
from hfbench.engines.reading.found import Found, NoEngine, facts
from hfbench.models.files import open_regular
from hfbench.models.problem import counted, listed, quoted
from hfbench.units import show_bytes

LARGEST_METADATA = 64 * 2**10
MOST_MEMBERS = 100_000
REFETCH = "copy it here again, or build it again"

DEVICE, PLATFORM, MACHINE, ISA, CAPABILITY = (
    "AOTI_DEVICE_KEY",
    "AOTI_PLATFORM",
    "AOTI_MACHINE",
    "AOTI_CPU_ISA",
    "AOTI_COMPUTE_CAPABILITY",
)
ZIP_ERRORS = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    OSError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    EOFError,
    IndexError,
)
"""What zipfile raises for archives that are damaged, encrypted or of an odd kind."""


def read_package(path: Path, folder: Path) -> Found:
    """What a .pt2 tells; NoEngine says what is wrong with the archive."""
    with open_regular(path, folder) as raw:
        size = os.fstat(raw.fileno()).st_size
        try:
            with zipfile.ZipFile(raw) as archive:
                return _read(archive, path, size)
        except NoEngine:
            raise
        except ZIP_ERRORS as error:
            found = f"is no whole zip archive, as packages are ({_reason(error)})"
            raise NoEngine(found, where=path, remedy=REFETCH) from None


def _read(archive: zipfile.ZipFile, path: Path, size: int) -> Found:
    members = archive.infolist()
    if len(members) > MOST_MEMBERS:
        raise NoEngine(f"the archive holds {len(members):,} files: no package has so many", where=path)
    told = [_metadata(archive, each) for each in members if each.filename.endswith("_metadata.json")]
    code = [each for each in members if each.filename.endswith((".so", ".so.1"))]
    programs = sorted({name for each in code if (name := _program(each.filename))})
    if not told and not code:
        found = "is a zip archive without compiled code: a program of torch.export, or weights of torch.save"
        raise NoEngine(found, where=path, remedy="compile it with hfbench engine build")
    faults = [f"the metadata {quoted(name)} cannot be read" for name, data in told if not data]
    data = next((each for _, each in told if each), {})
    objects = [_object(archive, each, faults) for each in code]
    whole = [each for each in objects if each]
    return Found(
        kind="aoti",
        what="AOTInductor package",
        path=path,
        size=size,
        facts=facts(
            programs=listed(programs, 6) if programs else "",
            code=f"{counted(len(code), 'shared object')}, {show_bytes(sum(each.file_size for each in code))}",
            made_for=data.get(DEVICE),
            platform=data.get(PLATFORM),
            machine=data.get(MACHINE) or (whole[0].machine if whole else ""),
            instruction_set=data.get(ISA),
            compute_capability=capability(data.get(CAPABILITY, "")),
        ),
        built_on=_built_on(data, whole),
        needs=tuple(sorted({name for each in whole for name in each.needed})),
        glibc=max((each.glibc for each in whole), key=_sortable, default=""),
        faults=tuple(dict.fromkeys(faults)),
        silent=(
            "the version of torch that built it",
            "the shapes it answers to: another shape may end the process, so set AOTI_RUNTIME_CHECK_INPUTS=1",
            "the model it was built from",
        ),
    )


def capability(told: str) -> str:
    """`90` -> `9.0`, as torch packs compute capabilities; empty for what is none."""
    if told.isdecimal() and 2 <= len(told) <= 3:
        return f"{told[:-1]}.{told[-1]}"
    return told if told.replace(".", "", 1).isdecimal() and "." in told else ""


def _built_on(data: dict[str, str], objects: list[Elf]) -> BuiltOn:
    told = capability(data.get(CAPABILITY, ""))
    gpu = GpuBuilt(name="", compute_capability=told) if told and data.get(DEVICE) != "cpu" else None
    return BuiltOn(
        python="",
        platform=data.get(PLATFORM, ""),
        machine=data.get(MACHINE) or (objects[0].machine if objects else ""),
        isa_level=data.get(ISA, "").lower(),
        gpu=gpu,
    )


def _metadata(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[str, dict[str, str]]:
    """The texts of a small JSON object; none when it is damaged."""
    try:
        if member.file_size > LARGEST_METADATA:
            return member.filename, {}
        with archive.open(member) as file:
            data: Any = json.loads(file.read(LARGEST_METADATA))
    except (*ZIP_ERRORS, RecursionError):
        return member.filename, {}
    if not isinstance(data, dict):
        return member.filename, {}
    return member.filename, {key: value[:200] for key, value in data.items() if isinstance(value, str)}


def _object(archive: zipfile.ZipFile, member: zipfile.ZipInfo, faults: list[str]) -> Elf | None:
    if member.compress_type != zipfile.ZIP_STORED:  # seeking in it would unpack it again and again
        return None
    try:
        with archive.open(member) as file:
            return read_elf(file)  # type: ignore[arg-type]
    except ElfError as error:
        faults.append(f"the code {quoted(os.path.basename(member.filename))} cannot be loaded: {error.found}")
    except ZIP_ERRORS as error:
        faults.append(f"the code {quoted(os.path.basename(member.filename))} cannot be read: {_reason(error)}")
    return None


def _program(member: str) -> str:
    """`name/data/aotinductor/PROGRAM/x.so` -> PROGRAM."""
    parts = member.split("/")
    return parts[parts.index("aotinductor") + 1] if "aotinductor" in parts[:-2] else ""


def _sortable(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def _reason(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:120]
