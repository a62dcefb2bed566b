"""Downloads into a cache or a folder that survive a kill: in parts, verified as they stream, published whole."""
