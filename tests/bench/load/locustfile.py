"""People who ask, read the streamed answer, think and ask again; and now and then a whole answer or an embedding.

    locust -f tests/bench/load/locustfile.py --headless -H http://127.0.0.1:8000 -u 50 -r 10 -t 60s
with COMPLY_KEY (an API key) and COMPLY_MODELS ("CHAT EMBEDDER"). Besides the time of each request it reports when the
first text came (`first text`). A stream that does not end in [DONE] is a failure.
"""

from __future__ import annotations

import json
import os
import time
from uuid import uuid4

from locust import HttpUser, between, task

KEY = os.environ["COMPLY_KEY"]
CHAT_MODEL, EMBEDDER = os.environ["COMPLY_MODELS"].split()
CHAT = "/v1/chat/completions"


class Person(HttpUser):
    wait_time = between(0.2, 1.0)

    def on_start(self) -> None:
        self.client.headers["Authorization"] = f"Bearer {KEY}"

    @task(8)
    def reads_a_streamed_answer(self) -> None:
        began = time.perf_counter()
        body = self._question() | {"stream": True}
        with self.client.post(CHAT, json=body, stream=True, catch_response=True, name="stream") as response:
            if response.status_code != 200:
                response.failure(f"{response.status_code}: {response.text[:200]}")
                return
            is_whole, has_text = False, False
            for line in response.iter_lines():
                is_whole = is_whole or line == b"data: [DONE]"
                if not has_text and b'"content":"' in line and b'"content":""' not in line:
                    has_text = True
                    self._report("first text", time.perf_counter() - began)
            if not is_whole:
                response.failure("the stream did not end in [DONE]")

    @task(1)
    def waits_for_a_whole_answer(self) -> None:
        with self.client.post(CHAT, json=self._question(), catch_response=True, name="whole") as response:
            if response.status_code != 200 or not json.loads(response.text)["choices"][0]["finish_reason"]:
                response.failure(f"{response.status_code}: {response.text[:200]}")

    @task(1)
    def embeds(self) -> None:
        self.client.post("/v1/embeddings", json={"model": EMBEDDER, "input": str(uuid4())}, name="embedding")

    def _question(self) -> dict[str, object]:
        return {"model": CHAT_MODEL, "messages": [{"role": "user", "content": f"What is {uuid4()} to you?"}]}

    def _report(self, name: str, seconds: float) -> None:
        self.environment.events.request.fire(
            request_type="SSE",
            name=name,
            response_time=seconds * 1000,
            response_length=0,
            exception=None,
            context={},
        )
