"""Looking after a hub: what is damaged, what nobody needs, what there is, a copy of it, and models brought in."""
