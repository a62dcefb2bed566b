"""Converts tokenizer files to the text of a tokenizer.json with transformers, in a process of its own.

`python -m hfbench.tokens.convert_child` answers with the text for a folder of copied files. Remote code is refused.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

from hfbench.errors import HfbenchError, MissingError
from hfbench.tokens.serve import Answer, serve, told_of

MEMORY = 3 * 2**30
"""Bytes of address space: transformers and its libraries take 200 MiB, tables of merges up to 2 GiB."""

LONGEST_FILE = 64 * 2**20
"""Bytes of a file that a library may write into the folder of copies."""

NOT_NEEDED = ("torch", "tensorflow", "jax", "flax", "torchvision", "torchaudio", "torchcodec")
"""Packages that transformers would look at for models, at a second each."""


def answer(request: dict[str, Any], payload: bytes) -> Answer:
    """The text of a tokenizer.json."""
    for name in NOT_NEEDED:
        sys.modules[name] = None  # type: ignore[assignment]  # as if it were not installed
    tempfile.tempdir = request["folder"]  # whoever asks removes it
    try:
        import transformers
        from transformers import AutoTokenizer
    except ImportError as error:
        raise MissingError(f"transformers cannot be imported ({told_of(error)})") from None
    if request["custom"] and not _known(request["folder"]):
        raise HfbenchError(f"its tokenizer is code of the model ({request['custom']}), which is never run")
    try:
        tokenizer = AutoTokenizer.from_pretrained(request["folder"], trust_remote_code=False, local_files_only=True)
    except MemoryError:
        raise
    except BaseException as error:  # anything may come out of there, a panic of native code too
        raise HfbenchError(f"transformers says: {told_of(error).replace(request['folder'], 'the folder')}") from None
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise HfbenchError(f"transformers has it in Python only ({type(tokenizer).__name__})")
    told = {"version": transformers.__version__, "tokens": backend.get_vocab_size()}
    return told, backend.to_str().encode()


def _known(folder: str) -> bool:
    """True when the class the files name is one of transformers' own."""
    from transformers.models.auto.tokenization_auto import get_tokenizer_config, tokenizer_class_from_name

    named = get_tokenizer_config(folder, local_files_only=True).get("tokenizer_class")
    return isinstance(named, str) and tokenizer_class_from_name(named) is not None


if __name__ == "__main__":
    serve(answer, memory=MEMORY, file=LONGEST_FILE)
