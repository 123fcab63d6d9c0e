"""The ways in which models write calls, as the templates that they were trained with teach them.

Knows marks and keys. How a template was found to use one of them is `front.template_probe`'s; `tools.reader` reads.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallFormat:
    """A call is `opening`, a JSON object {"name": ..., `arguments_key`: {...}}, `closing`.

    Without an opening a call is only what the whole answer begins with. `blank` and `between` are how models are
    trained to write it; blanks that differ are read as well.
    """

    name: str
    arguments_key: str
    opening: str = ""
    closing: str = ""
    blank: str = ""  # behind the opening and before the closing
    between: str = "\n"
    repeats: bool = True  # whether templates take more than one call in an answer

    @property
    def marks(self) -> tuple[str, ...]:
        """What may be a control token of the model and still has to be seen in its answers."""
        return tuple(mark for mark in (self.opening, self.closing) if mark)


HERMES = CallFormat("hermes", "arguments", "<tool_call>", "</tool_call>", blank="\n")
LLAMA_JSON = CallFormat("llama_json", "parameters", between="; ", repeats=False)

FORMATS = {form.name: form for form in (HERMES, LLAMA_JSON)}
