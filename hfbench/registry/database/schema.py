"""The tables, one schema for SQLite and PostgreSQL. Times are seconds since 1970, hashes are hexadecimal."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = MetaData(naming_convention=NAMING)
SHA256 = String(64)
COMMIT = String(40)


def _to(target: str, name: str, *, primary: bool = False, index: bool = False) -> Column[int]:
    """A reference that goes with what it refers to."""
    return Column(
        name, Integer, ForeignKey(target, ondelete="CASCADE"), primary_key=primary, nullable=False, index=index
    )


namespaces = Table(
    "namespace",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("folded", Text, nullable=False, unique=True),
    Column("kind", String(8), nullable=False),  # user or org
    Column("quota", BigInteger),  # bytes; null is the hub's default
    Column("created", Double, nullable=False),
)
accounts = Table(
    "account",
    metadata,
    Column("id", Integer, primary_key=True),
    _to("namespace.id", "namespace_id"),
    Column("name", Text, nullable=False, unique=True),
    Column("fullname", Text, nullable=False),
    Column("is_admin", Boolean, nullable=False),
    Column("disabled", Boolean, nullable=False),
    Column("created", Double, nullable=False),
)
members = Table(
    "member",
    metadata,
    _to("account.id", "account_id", primary=True),
    _to("namespace.id", "namespace_id", primary=True),
    Column("role", String(8), nullable=False),
)
tokens = Table(
    "token",
    metadata,
    Column("id", Integer, primary_key=True),
    _to("account.id", "account_id", index=True),
    Column("name", Text, nullable=False),
    Column("prefix", Text, nullable=False),
    Column("digest", SHA256, nullable=False, unique=True),
    Column("scope", String(8), nullable=False),
    Column("namespaces", JSON),  # list of namespace ids; null is all
    Column("created", Double, nullable=False),
    Column("expires", Double),
    Column("revoked", Double),
    Column("last_used", Double),
)
repos = Table(
    "repo",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("kind", String(8), nullable=False),  # model or dataset
    _to("namespace.id", "namespace_id", index=True),
    Column("name", Text, nullable=False),
    Column("folded", Text, nullable=False),
    Column("private", Boolean, nullable=False),
    Column("gated", String(8), nullable=False),  # empty, auto or manual
    Column("strict", Boolean, nullable=False),
    Column("disabled", Boolean, nullable=False),
    Column("created", Double, nullable=False),
    Column("modified", Double, nullable=False),
    Column("downloads", BigInteger, nullable=False),
    Column("pipeline_tag", Text),
    Column("library_name", Text),
    Column("parameters", BigInteger),
    Column("facts_tree", SHA256),  # the tree those facts and the tags were read from
    UniqueConstraint("kind", "namespace_id", "folded"),
    sqlite_autoincrement=True,  # links and permissions carry the id: that of a removed repository is not given again
)
former_names = Table(  # of repositories that were moved; all parts are folded
    "former_name",
    metadata,
    Column("kind", String(8), primary_key=True),
    Column("namespace", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    _to("repo.id", "repo_id", index=True),
)
repo_tags = Table(
    "repo_tag", metadata, _to("repo.id", "repo_id", primary=True), Column("tag", Text, primary_key=True, index=True)
)
gate_requests = Table(
    "gate_request",
    metadata,
    _to("repo.id", "repo_id", primary=True),
    _to("account.id", "account_id", primary=True),
    Column("state", String(8), nullable=False),  # pending, accepted or rejected
    Column("at", Double, nullable=False),
)
refs = Table(
    "ref",
    metadata,
    _to("repo.id", "repo_id", primary=True),
    Column("kind", String(8), primary_key=True),  # branch or tag
    Column("name", Text, primary_key=True),
    Column("commit", COMMIT, nullable=False),
    Column("message", Text),
)
commits = Table(
    "commit",
    metadata,
    _to("repo.id", "repo_id", primary=True),
    Column("id", COMMIT, primary_key=True),
    Column("parent", COMMIT),
    Column("tree", SHA256, nullable=False),
    Column("title", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("payload", SHA256, nullable=False),  # what was asked for: tells a retry from a new commit
)
trees = Table(
    "tree",
    metadata,
    Column("id", SHA256, primary_key=True),
    Column("git_id", COMMIT, nullable=False),
    Column("entries", LargeBinary, nullable=False),
)
tree_facts = Table(
    "tree_facts", metadata, Column("tree", SHA256, primary_key=True), Column("facts", JSON, nullable=False)
)
blobs = Table(
    "blob",
    metadata,
    Column("sha256", SHA256, primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("place", String(8), nullable=False),  # inline, file or xet
    Column("created", Double, nullable=False),
)
inline_blobs = Table(
    "inline_blob", metadata, Column("sha256", SHA256, primary_key=True), Column("content", LargeBinary, nullable=False)
)
repo_blobs = Table(
    "repo_blob",
    metadata,
    _to("repo.id", "repo_id", primary=True),
    Column("sha256", SHA256, primary_key=True, index=True),
    Column("created", Double, nullable=False),
)
xorbs = Table(
    "xorb",
    metadata,
    Column("id", SHA256, primary_key=True),
    Column("size", BigInteger, nullable=False),  # bytes on disk
    Column("chunks", LargeBinary, nullable=False),
    Column("created", Double, nullable=False),
)
repo_xorbs = Table(
    "repo_xorb",
    metadata,
    _to("repo.id", "repo_id", primary=True),
    Column("xorb", SHA256, primary_key=True, index=True),
    Column("created", Double, nullable=False),
)
xorb_chunks = Table(
    "xorb_chunk",
    metadata,
    Column("chunk", SHA256, primary_key=True),
    Column("xorb", SHA256, primary_key=True, index=True),
)
xet_files = Table(
    "xet_file",
    metadata,
    Column("id", SHA256, primary_key=True),
    Column("sha256", SHA256, nullable=False, index=True),
    Column("size", BigInteger, nullable=False),
    Column("terms", LargeBinary, nullable=False),
    Column("created", Double, nullable=False),
)
xet_file_xorbs = Table(
    "xet_file_xorb",
    metadata,
    Column("file", SHA256, primary_key=True),
    Column("xorb", SHA256, primary_key=True, index=True),
)
reservations = Table(  # room promised to an upload until it arrives
    "reservation",
    metadata,
    _to("repo.id", "repo_id", primary=True),
    Column("content", SHA256, primary_key=True),  # of a blob, or the name of a xorb
    Column("size", BigInteger, nullable=False),
    Column("until", Double, nullable=False),
)
audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Double, nullable=False, index=True),
    Column("account", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("detail", JSON),
)
Index("ix_repo_listing", repos.c.kind, repos.c.modified, repos.c.id)
Index("ix_commit_payload", commits.c.repo_id, commits.c.payload)
