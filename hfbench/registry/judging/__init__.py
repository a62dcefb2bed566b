"""What a commit would make of a repository, judged by the rules of `hfbench.checks` before it is made."""
