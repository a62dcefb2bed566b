"""The private hub: routes that stock Hugging Face clients speak, content-addressed storage, and one database schema."""
