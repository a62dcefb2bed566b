"""The two spellings of each rule agree: for one repository, and as a clause over all."""

from __future__ import annotations

from itertools import product

from sqlalchemy import create_engine, insert, select

from hfbench.registry.access.caller import Caller
from hfbench.registry.access.rules import may_open, may_see, openable, visible
from hfbench.registry.database.repos import Repo
from hfbench.registry.database.schema import gate_requests, metadata, namespaces, repos

TEAM, OTHER = 1, 2


def test_a_rule_as_a_clause_finds_what_the_rule_allows() -> None:
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    cases = list(product((TEAM, OTHER), (False, True), ("", "auto", "manual")))
    callers = [
        Caller(),
        *(
            Caller(account=1, is_admin=admin, roles={TEAM: role} if role else {}, namespaces=only, scope="write")
            for admin, role, only in product(
                (False, True), ("", "read", "write", "admin"), (None, frozenset({TEAM}), frozenset({OTHER}))
            )
        ),
    ]
    with engine.begin() as connection:
        for id, name in ((TEAM, "team"), (OTHER, "other")):
            connection.execute(insert(namespaces).values(id=id, name=name, folded=name, kind="org", created=0))
        known = []
        for id, (namespace, private, gated) in enumerate(cases, 1):
            row = {"id": id, "kind": "model", "namespace_id": namespace, "name": f"r{id}", "private": private}
            row |= {"gated": gated, "strict": False, "disabled": False, "created": 0, "modified": 0, "downloads": 0}
            connection.execute(insert(repos).values(folded=f"r{id}", **row))
            facts = {"namespace": "", "pipeline_tag": "", "library_name": "", "parameters": 0, "facts_tree": ""}
            known.append(Repo(**row, **facts))  # type: ignore[arg-type]
        granted = {2, 5, 8}
        for id in granted:
            connection.execute(insert(gate_requests).values(repo_id=id, account_id=1, state="accepted", at=0))
        for caller in callers:
            seen = set(connection.execute(select(repos.c.id).where(visible(caller))).scalars())
            opened = set(connection.execute(select(repos.c.id).where(openable(caller))).scalars())
            lets = {
                repo.id for repo in known if may_open(caller, repo, granted=caller.account == 1 and repo.id in granted)
            }
            assert seen == {repo.id for repo in known if may_see(caller, repo)}
            assert opened == lets
