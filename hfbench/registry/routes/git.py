"""git itself, which this hub does not speak: said as text, because that is what git shows."""

from __future__ import annotations

from starlette.responses import PlainTextResponse, Response

from hfbench.registry.call import Call
from hfbench.registry.routing import router

ANSWER = "This hub has no git: download with hf download, upload with hf upload.\n"


@router.get("/{namespace}/{name}/info/refs")
async def refs_of_git(_call: Call) -> Response:
    """What `git clone` asks first, of a model."""
    return _refused()


@router.get("/{kind}/{namespace}/{name}/info/refs")
async def refs_of_git_of_kind(_call: Call) -> Response:
    """What `git clone` asks first, of a dataset."""
    return _refused()


def _refused() -> Response:
    """The same for every name: whether there is such a repository is not told."""
    return PlainTextResponse(ANSWER, 501, {"X-Error-Code": "NotImplemented"})
