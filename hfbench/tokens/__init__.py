"""Text to tokens and conversations to text, in processes that their limits may end."""
