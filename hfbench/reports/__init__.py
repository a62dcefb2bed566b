"""A job, a sweep or a script's results as a document somebody else can read."""
