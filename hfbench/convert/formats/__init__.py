"""Files of tensors, read without executing anything and laid out before they are filled."""
