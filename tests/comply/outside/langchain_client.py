"""What a program with LangChain does against the site: ask, stream, embed. Prints what it got as JSON."""

from __future__ import annotations

import json
import os

from langchain_openai import ChatOpenAI, OpenAIEmbeddings

base_url, key = os.environ["COMPLY_URL"], os.environ["COMPLY_KEY"]
chat_model, embedder = os.environ["COMPLY_MODELS"].split()
chat = ChatOpenAI(model=chat_model, base_url=base_url, api_key=key, max_retries=0)
whole = chat.invoke([("system", "Be brief."), ("human", "Good morning")])
pieces = list(chat.stream([("human", "Good evening")]))
# Without the switch it sends ids of a tokenizer that it downloads; the site takes texts, and says so.
vectors = OpenAIEmbeddings(
    model=embedder, base_url=base_url, api_key=key, check_embedding_ctx_length=False, max_retries=0
).embed_documents(["a river", "a mountain"])
print(
    json.dumps(
        {
            "whole": whole.content,
            "finish_reason": whole.response_metadata["finish_reason"],
            "tokens": whole.usage_metadata["total_tokens"],
            "streamed": "".join(str(piece.content) for piece in pieces),
            "num_pieces": len(pieces),
            "dimensions": [len(vector) for vector in vectors],
        }
    )
)
