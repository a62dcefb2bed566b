"""Which runtime carries a model out, in which number formats, on which card, told from tables and installed sources."""
