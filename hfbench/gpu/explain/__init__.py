"""Why a device ran out of memory although some seems free: what is known as a plain record, and rules over it."""
