"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
TABLES = (
    "token",
    "repo_xorb",
    "repo_tag",
    "repo_blob",
    "ref",
    "member",
    "gate_request",
    "commit",
    "repo",
    "account",
    "xorb_chunk",
    "xorb",
    "xet_file_xorb",
    "xet_file",
    "tree_facts",
    "tree",
    "namespace",
    "inline_blob",
    "blob",
    "audit",
)


def upgrade() -> None:
    """Make every table."""
    _content()
    _xet()
    _people()
    _repositories()
    _history()


def downgrade() -> None:
    """Drop every table."""
    for name in TABLES:
        op.drop_table(name)


def _content() -> None:
    """What was done, content by its hash, and folders."""
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_at"), "audit", ["at"], unique=False)
    op.create_table(
        "blob",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("place", sa.String(length=8), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_blob")),
    )
    op.create_table(
        "inline_blob",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_inline_blob")),
    )
    op.create_table(
        "tree",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("git_id", sa.String(length=40), nullable=False),
        sa.Column("entries", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tree")),
    )
    op.create_table(
        "tree_facts",
        sa.Column("tree", sa.String(length=64), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("tree", name=op.f("pk_tree_facts")),
    )


def _xet() -> None:
    """Files made of chunks."""
    op.create_table(
        "xet_file",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("terms", sa.LargeBinary(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_xet_file")),
    )
    op.create_index(op.f("ix_xet_file_sha256"), "xet_file", ["sha256"], unique=False)
    op.create_table(
        "xet_file_xorb",
        sa.Column("file", sa.String(length=64), nullable=False),
        sa.Column("xorb", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("file", "xorb", name=op.f("pk_xet_file_xorb")),
    )
    op.create_index(op.f("ix_xet_file_xorb_xorb"), "xet_file_xorb", ["xorb"], unique=False)
    op.create_table(
        "xorb",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("chunks", sa.LargeBinary(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_xorb")),
    )
    op.create_table(
        "xorb_chunk",
        sa.Column("chunk", sa.String(length=64), nullable=False),
        sa.Column("xorb", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("chunk", "xorb", name=op.f("pk_xorb_chunk")),
    )
    op.create_index(op.f("ix_xorb_chunk_xorb"), "xorb_chunk", ["xorb"], unique=False)


def _people() -> None:
    """Namespaces, accounts, their roles and tokens."""
    op.create_table(
        "namespace",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("folded", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("quota", sa.BigInteger(), nullable=True),
        sa.Column("created", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_namespace")),
        sa.UniqueConstraint("folded", name=op.f("uq_namespace_folded")),
    )
    op.create_table(
        "account",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("namespace_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("fullname", sa.Text(), nullable=False),
        sa.Column("is_admin", sa.Boolean(), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["namespace_id"], ["namespace.id"], name=op.f("fk_account_namespace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_account")),
        sa.UniqueConstraint("name", name=op.f("uq_account_name")),
    )
    op.create_table(
        "member",
        sa.Column("account_id", sa.Integer(), nullable=False),
        sa.Column("namespace_id", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(length=8), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name=op.f("fk_member_account_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["namespace_id"], ["namespace.id"], name=op.f("fk_member_namespace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("account_id", "namespace_id", name=op.f("pk_member")),
    )
    op.create_table(
        "token",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("account_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("scope", sa.String(length=8), nullable=False),
        sa.Column("namespaces", sa.JSON(), nullable=True),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("expires", sa.Double(), nullable=True),
        sa.Column("revoked", sa.Double(), nullable=True),
        sa.Column("last_used", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name=op.f("fk_token_account_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_token")),
        sa.UniqueConstraint("digest", name=op.f("uq_token_digest")),
    )
    op.create_index(op.f("ix_token_account_id"), "token", ["account_id"], unique=False)


def _repositories() -> None:
    """Repositories and who asked to open them."""
    op.create_table(
        "repo",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("namespace_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("folded", sa.Text(), nullable=False),
        sa.Column("private", sa.Boolean(), nullable=False),
        sa.Column("gated", sa.String(length=8), nullable=False),
        sa.Column("strict", sa.Boolean(), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("modified", sa.Double(), nullable=False),
        sa.Column("downloads", sa.BigInteger(), nullable=False),
        sa.Column("pipeline_tag", sa.Text(), nullable=True),
        sa.Column("library_name", sa.Text(), nullable=True),
        sa.Column("parameters", sa.BigInteger(), nullable=True),
        sa.Column("facts_tree", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(
            ["namespace_id"], ["namespace.id"], name=op.f("fk_repo_namespace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_repo")),
        sa.UniqueConstraint("kind", "namespace_id", "folded", name=op.f("uq_repo_kind_namespace_id_folded")),
    )
    op.create_index("ix_repo_listing", "repo", ["kind", "modified", "id"], unique=False)
    op.create_index(op.f("ix_repo_namespace_id"), "repo", ["namespace_id"], unique=False)
    op.create_table(
        "gate_request",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("account_id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=8), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"], ["account.id"], name=op.f("fk_gate_request_account_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_gate_request_repo_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("repo_id", "account_id", name=op.f("pk_gate_request")),
    )
    op.create_table(
        "repo_tag",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("tag", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_repo_tag_repo_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("repo_id", "tag", name=op.f("pk_repo_tag")),
    )
    op.create_index(op.f("ix_repo_tag_tag"), "repo_tag", ["tag"], unique=False)


def _history() -> None:
    """Commits, what names them, and the content a repository holds."""
    op.create_table(
        "commit",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("parent", sa.String(length=40), nullable=True),
        sa.Column("tree", sa.String(length=64), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("payload", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_commit_repo_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("repo_id", "id", name=op.f("pk_commit")),
    )
    op.create_index("ix_commit_payload", "commit", ["repo_id", "payload"], unique=False)
    op.create_table(
        "ref",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("commit", sa.String(length=40), nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_ref_repo_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("repo_id", "kind", "name", name=op.f("pk_ref")),
    )
    op.create_table(
        "repo_blob",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_repo_blob_repo_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("repo_id", "sha256", name=op.f("pk_repo_blob")),
    )
    op.create_index(op.f("ix_repo_blob_sha256"), "repo_blob", ["sha256"], unique=False)
    op.create_table(
        "repo_xorb",
        sa.Column("repo_id", sa.Integer(), nullable=False),
        sa.Column("xorb", sa.String(length=64), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_repo_xorb_repo_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("repo_id", "xorb", name=op.f("pk_repo_xorb")),
    )
    op.create_index(op.f("ix_repo_xorb_xorb"), "repo_xorb", ["xorb"], unique=False)
