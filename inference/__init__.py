"""The inference process: continuous batching, KV reuse and embeddings behind a gRPC door."""
