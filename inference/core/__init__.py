"""The device side: model, batcher, KV blocks, embedding lane. Runs in its own process; never sees text or sockets."""
