"""What words say: reading questions, comparing them, and what in them must not be shared. Pure."""
