"""The door side: gRPC, chat template, tokenizer, detokenizer, stops, admission, event logs. Never imports torch."""
