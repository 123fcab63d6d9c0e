"""Generated code of the engine contract (see engine.proto)."""
