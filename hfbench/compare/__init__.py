"""What differs between measurements, and whether the difference can be believed."""
