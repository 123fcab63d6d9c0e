"""The scripted core's own promises, where the contract suite would meet them only by chance."""

from __future__ import annotations

import json
import socket
import threading

import jsonschema

from inference.core.messages import (
    FRAME_HEADER,
    Admit,
    Inbox,
    SamplingSpec,
    StepPack,
    Vocabulary,
    pack,
    unpack_from_core,
)
from inference.testing.core import ScriptedCore
from inference.testing.held import fitting
from inference.testing.script import script_text
from inference.testing.tokenizer import END_OF_TURN, ByteTokenizer
from inference.tools.formats import HERMES
from inference.tools.functions import Function
from inference.tools.grammar import grammar_of_calls
from inference.types import Grammar


def test_a_waiting_answer_begins_when_all_running_ones_end_in_one_step() -> None:
    """A loop that sleeps until a running one is due would sleep for ever: nothing runs."""
    ours, theirs = socket.socketpair()
    ours.settimeout(5)
    core = threading.Thread(target=ScriptedCore(theirs, max_batch=2).run)
    core.start()
    prompt = list(script_text(text="x").encode())
    admits = [Admit(name, prompt, SamplingSpec(), 1, [], b"", b"") for name in "abc"]
    ours.sendall(pack(Inbox(list(admits))))
    ended: set[str] = set()
    with ours, ours.makefile("rb") as frames:
        while len(ended) < 3:
            (size,) = FRAME_HEADER.unpack(frames.read(FRAME_HEADER.size))
            message = unpack_from_core(frames.read(size))
            if isinstance(message, StepPack):
                ended |= {out.id for out in message.finished}
    core.join(5)
    theirs.close()
    assert ended == {"a", "b", "c"}


def test_an_answer_without_a_script_fits_its_grammar() -> None:
    tokenizer = ByteTokenizer()
    tokens = [tokenizer.token_bytes(token) for token in range(tokenizer.num_tokens)]
    vocabulary = Vocabulary(tokens, sorted(tokenizer.control_ids), [END_OF_TURN])
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "array", "items": {"type": "integer"}, "minItems": 2},
        },
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    text = tokenizer.decode(fitting(Grammar("json_schema", json.dumps(schema)), vocabulary))
    jsonschema.validate(json.loads(text), schema)
    wanted = Function("f", parameters=schema)
    text = tokenizer.decode(
        fitting(Grammar("lark", grammar_of_calls(HERMES, [wanted], {}, is_one=False)), vocabulary)
    )
    assert text.startswith("<tool_call>") and text.endswith("</tool_call>") and text.count("<tool_call>") == 1
