"""Where models come from: resolving a name to a folder, converting once, loading into memory."""
