"""How fast a checkpoint gets from a disk to a device, by each loader there is, from a cold and a warm page cache."""
