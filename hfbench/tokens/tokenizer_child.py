"""Cuts texts into tokens with the tokenizers library, in a process of its own, which its limits may end.

`python -m hfbench.tokens.tokenizer_child` answers `load`, with a folder or with the text of a tokenizer.json, and
`encode`, with a text. No code of a model runs: tokenizer.json is data.
"""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

from hfbench.errors import HfbenchError
from hfbench.models.files import read_bytes
from hfbench.models.json_text import MOST_BYTES
from hfbench.models.magic import LOOK, recognise
from hfbench.models.problem import ModelError
from hfbench.tokens.encoded import ADDED, FILE, PLAIN, SPECIAL
from hfbench.tokens.offsets import byte_extents
from hfbench.tokens.serve import Answer, serve, told_of

MEMORY = 1536 * 2**20
"""Bytes of address space beside the interpreter's. A vocabulary of 262,144 tokens with 514,000 merges takes 370 MiB
to load, and a text of a million tokens 200 MiB more."""

PREFIX = "Cannot instantiate Tokenizer from buffer: "


class Served:
    """The tokenizer that was loaded last."""

    def __init__(self) -> None:
        self._tokenizer: Any = None
        self._added: dict[int, int] = {}

    def answer(self, request: dict[str, Any], payload: bytes) -> Answer:
        """Load or encode."""
        if request["do"] == "load":
            return self._load(Path(request["folder"]), payload)
        return self._encode(payload, special=request["special"])

    def _load(self, folder: Path, given: bytes) -> Answer:
        from tokenizers import Tokenizer

        raw = given or read_bytes(folder / FILE, MOST_BYTES, folder)
        what = recognise(raw[:LOOK])
        if what and what != "JSON text":
            raise ModelError("tokenizer_json", f"this is {what}", where=FILE, remedy="fetch the file again")
        try:
            tokenizer = Tokenizer.from_buffer(raw)
            tokenizer.no_padding()
            tokenizer.no_truncation()
        except MemoryError:
            raise
        except BaseException as error:  # a panic of the library is no Exception
            found = f"the tokenizers library cannot read it: {told_of(error).removeprefix(PREFIX)}"
            raise ModelError("tokenizer_json", found, where=FILE, remedy="save the tokenizer again") from None
        added = tokenizer.get_added_tokens_decoder()
        self._added = {number: SPECIAL if token.special else ADDED for number, token in added.items()}
        self._tokenizer = tokenizer
        return {"vocabulary": tokenizer.get_vocab_size(), "added": len(added)}, b""

    def _encode(self, payload: bytes, *, special: bool) -> Answer:
        text = payload.decode()
        try:
            encoding = self._tokenizer.encode(text, add_special_tokens=special)
        except MemoryError:
            raise
        except BaseException as error:
            raise HfbenchError(f"the tokenizers library cannot cut this text: {told_of(error)}") from None
        ids = array("I", encoding.ids)
        pieces = {number: self._tokenizer.id_to_token(number) or "" for number in set(ids)}
        begins, ends = byte_extents(text, encoding.offsets, lambda row: pieces[ids[row]])
        kinds = bytearray(map(self._added.get, ids, [PLAIN] * len(ids)))
        for row, masked in enumerate(encoding.special_tokens_mask):
            if masked:
                kinds[row] = SPECIAL
        columns = ids.tobytes() + begins.tobytes() + ends.tobytes() + bytes(kinds)
        return {"count": len(ids), "pieces": {str(number): piece for number, piece in pieces.items()}}, columns


def main() -> None:
    """Serve until stdin ends."""
    served = Served()
    try:
        import tokenizers  # noqa: F401 - before memory is limited, so that its size counts as the interpreter's
    except ImportError:
        pass  # told by the first request that needs it
    serve(served.answer, memory=MEMORY)


if __name__ == "__main__":
    main()
