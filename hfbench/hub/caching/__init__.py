"""What lies in a Hugging Face cache, and how it is freed safely."""
