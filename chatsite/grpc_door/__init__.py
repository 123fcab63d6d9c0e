"""The gRPC door for integrations: many questions over one stream, through the same flow as every door."""
