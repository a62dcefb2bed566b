"""Who asks, what they may see and do, and links that carry their own permission."""
