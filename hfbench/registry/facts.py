"""What lists and pages tell of a repository beyond its name: read from its files once a tree, and kept."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from hfbench.models.safetensors import HeaderError, read_header
from hfbench.registry.database.history import find_revision
from hfbench.registry.database.repos import Repo, change_repo, set_tags
from hfbench.registry.database.rows import add_missing
from hfbench.registry.database.schema import tree_facts
from hfbench.registry.front_matter import front_matter
from hfbench.registry.hub import Hub
from hfbench.registry.plain import plain, read_json
from hfbench.registry.revisions.entries import Entry
from hfbench.registry.storage.reading import Plan
from hfbench.registry.storage.rebuilding import DamagedError
from hfbench.units import KIB, MIB

log = logging.getLogger("hfbench.registry")
LARGEST = 4 * MIB
"""Bytes of a configuration or card that are read."""
MOST_SHARDS = 2000
LONGEST_VALUE = 64 * KIB
"""Characters of one value of a configuration that are told on."""
MOST_PARAMETERS = 2**63 - 1
CONFIG_KEYS = ("architectures", "model_type", "quantization_config", "auto_map")
PREFIXED = {"license": "license:", "base_model": "base_model:", "datasets": "dataset:"}
Facts = dict[str, Any]


async def facts_of(hub: Hub, tree: str) -> Facts:
    """The facts of a tree: config, cardData, safetensors, tags, pipeline_tag and library_name, each where known."""
    async with hub.database.reading() as connection:
        known = (await connection.execute(select(tree_facts.c.facts).where(tree_facts.c.tree == tree))).scalar()
    if known is not None:
        return dict(known)
    try:
        facts = await _read(hub, tree)
    except DamagedError:
        return {}  # told by whoever downloads it, and by fsck; read again when it was mended
    async with hub.database.writing() as connection:
        await add_missing(connection, tree_facts, [{"tree": tree, "facts": facts}])
    return facts


async def refresh(hub: Hub, repo: Repo) -> None:
    """Let lists know what `main` holds now. Never fails: the commit stands, and the next page shown tries again."""
    try:
        async with hub.database.reading() as connection:
            head = await find_revision(connection, repo.id, "main")
        if head is None or head.tree == repo.facts_tree:
            return
        facts = await facts_of(hub, head.tree)
        async with hub.database.writing() as connection:
            await set_tags(connection, repo.id, facts.get("tags", ()))
            await change_repo(
                connection,
                repo.id,
                pipeline_tag=facts.get("pipeline_tag"),
                library_name=facts.get("library_name"),
                parameters=_kept((facts.get("safetensors") or {}).get("total")),
                facts_tree=head.tree,
            )
    except Exception:
        log.exception("the facts of a repository could not be read")


async def _read(hub: Hub, tree: str) -> Facts:
    async with hub.database.reading() as connection:
        files = {path: entry async for path, entry in hub.trees.walk(connection, tree, recursive=False)}
        facts: Facts = {}
        card = front_matter((await _bytes(hub, connection, files.get("README.md"))).decode("utf-8", "replace"))
        config = _config(await _bytes(hub, connection, files.get("config.json")))
        shards = [
            await hub.reader.plan(connection, entry.target)
            for path, entry in files.items()
            if path.endswith(".safetensors") and not entry.is_folder
        ]
    if card:
        facts["cardData"] = card
    if config:
        facts["config"] = config
    if shards and len(shards) <= MOST_SHARDS and (counts := await asyncio.to_thread(_parameters, hub, shards)):
        facts["safetensors"] = {"parameters": counts, "total": sum(counts.values())}
    facts["library_name"] = _word(card.get("library_name")) or ("transformers" if config.get("model_type") else None)
    facts["pipeline_tag"] = _word(card.get("pipeline_tag"))
    facts["tags"] = sorted(_tags(card, facts))
    return facts


def _tags(card: Facts, facts: Facts) -> set[str]:
    tags = {*_words(card.get("tags")), *_words(card.get("language"))}
    tags |= {f"{prefix}{word}" for key, prefix in PREFIXED.items() for word in _words(card.get(key))}
    tags |= {word for key in ("library_name", "pipeline_tag") if (word := facts.get(key))}
    tags |= set(_words((facts.get("config") or {}).get("model_type")))
    return tags | ({"safetensors"} if "safetensors" in facts else set())


def _parameters(hub: Hub, shards: list[Plan]) -> dict[str, int]:
    """Elements by dtype over all files; a file that cannot be read counts nothing."""
    counts: Counter[str] = Counter()
    for plan in shards:
        try:
            with hub.reader.open(plan) as file:
                header = read_header(file, plan.size)
        except (HeaderError, OSError, ValueError):
            continue
        rows = Counter(header.kind_ids)
        for kind, number in rows.items():
            dtype, shape, _ = header.kinds[kind]
            elements = 1
            for side in shape:
                elements *= side
            counts[dtype] += number * elements
    return dict(counts)


async def _bytes(hub: Hub, connection: AsyncConnection, entry: Entry | None) -> bytes:
    if entry is None or entry.is_folder or entry.size > LARGEST:
        return b""
    return await hub.reader.read(await hub.reader.plan(connection, entry.target), LARGEST)


def _config(text: bytes) -> Facts:
    """What is told of a configuration, as every database keeps it; empty for one that cannot be read."""
    try:
        told = read_json(text) if text else {}
        found = {key: plain(told[key]) for key in CONFIG_KEYS if key in told} if isinstance(told, dict) else {}
    except ValueError:
        return {}
    return {key: value for key, value in found.items() if len(json.dumps(value)) <= LONGEST_VALUE}


def _kept(count: int | None) -> int | None:
    """A number of parameters as a column holds it: a header may claim any."""
    return None if count is None else min(count, MOST_PARAMETERS)


def _words(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [word for each in values[:200] if (word := _word(each))]


def _word(value: object) -> str | None:
    return value[:200].replace("\0", "") if isinstance(value, str) and value else None


__all__ = ["facts_of", "refresh"]
