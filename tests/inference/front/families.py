"""Small chat templates in the manner of the families that exist; written for tests, not taken from any model."""

from __future__ import annotations

from inference.front.templates import CHATML, CHATML_WITH_TOOLS

_CHATML_TURN = "{{ '<|im_start|>' + m.role + '\n' + %s + '<|im_end|>\n' }}"
_CHATML_END = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"


def _chatml_like(content: str, before: str = "") -> str:
    return f"{before}{{% for m in messages %}}{_CHATML_TURN % content}{{% endfor %}}{_CHATML_END}"


CHATML_WITH_DEFAULT_SYSTEM = _chatml_like(
    "m.content",
    "{% if messages[0].role != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}",
)
TRIMMING = _chatml_like("m.content | trim")
# A header block that is always there, with the date; every text is trimmed.
LLAMA_WITH_DATE = (
    "{% set day = strftime_now('%d %b %Y') %}"
    "{% if messages[0].role == 'system' %}{% set told = messages[0].content | trim %}"
    "{% set messages = messages[1:] %}{% else %}{% set told = '' %}{% endif %}"
    "{{ '<|im_start|>system\n\nToday Date: ' + day + '\n\n' + told + '<|im_end|>' }}"
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n\n' + m.content | trim + '<|im_end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n\n' }}{% endif %}"
)
# Thinking is cut out of answers before the last question; behind it, it is put together anew.
QWEN_THINKING = (
    "{% set ns = namespace(last=0) %}"
    "{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
    "{% for m in messages %}"
    "{% if m.role == 'assistant' %}"
    "{% set said = m.content.split('</think>')[-1].lstrip('\n') %}"
    "{% set thought = m.content.split('</think>')[0].split('<think>')[-1].strip('\n')"
    " if '</think>' in m.content else '' %}"
    "{% if loop.index0 > ns.last and thought %}"
    "{{ '<|im_start|>assistant\n<think>\n' + thought + '\n</think>\n\n' + said + '<|im_end|>\n' }}"
    "{% else %}{{ '<|im_start|>assistant\n' + said + '<|im_end|>\n' }}{% endif %}"
    "{% else %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endif %}"
    "{% endfor %}" + _CHATML_END
)
# The prompt opens the thinking itself, and old answers lose theirs.
DEEPSEEK_THINKING = _chatml_like("m.content.split('</think>')[-1]").replace(
    "assistant\n' }}{% endif", "assistant\n<think>\n' }}{% endif"
)
# Thinking is kept, but written anew with blanks of the template's own.
REBUILT_THINKING = QWEN_THINKING.replace("loop.index0 > ns.last and thought", "thought")
# Markers are plain text; the system prompt goes into the first question; roles must alternate.
MISTRAL = (
    "{% if messages[0].role == 'system' %}{% set told = messages[0].content + '\n\n' %}"
    "{% set turns = messages[1:] %}{% else %}{% set told = '' %}{% set turns = messages %}{% endif %}"
    "{% for m in turns %}"
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
    "{% if m.role == 'user' %}{{ '[INST] ' + (told if loop.first else '') + m.content + ' [/INST]' }}"
    "{% else %}{{ m.content + '<|im_end|>' }}{% endif %}"
    "{% endfor %}"
)
# The system prompt stands before the last question: with every turn it moves on.
MISTRAL_MOVING_SYSTEM = MISTRAL.replace("told if loop.first", "told if loop.last")
GEMMA = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for m in messages %}"
    "{% set role = 'model' if m.role == 'assistant' else m.role %}"
    "{{ '<|im_start|>' + role + '\n' + m.content | trim + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>model\n' }}{% endif %}"
)
# The last message first, for a template that reorders.
REORDERING = (
    "{{ '<|im_start|>now\n' + messages[-1].content + '<|im_end|>\n' }}"
    "{% for m in messages[:-1] %}"
    "{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}" + _CHATML_END
)
# Texts come out changed in a way that no place in them can be found again.
SHOUTING = _chatml_like("m.content | upper")
REFUSING = "{{ raise_exception('never') }}"

ALL = {
    "chatml": CHATML,
    "default system": CHATML_WITH_DEFAULT_SYSTEM,
    "trimming": TRIMMING,
    "llama with date": LLAMA_WITH_DATE,
    "qwen thinking": QWEN_THINKING,
    "deepseek thinking": DEEPSEEK_THINKING,
    "rebuilt thinking": REBUILT_THINKING,
    "mistral": MISTRAL,
    "mistral moving system": MISTRAL_MOVING_SYSTEM,
    "gemma": GEMMA,
    "reordering": REORDERING,
    "shouting": SHOUTING,
}

# One call at a time, as JSON that is the whole answer; results are written as JSON, and the functions are indented.
LLAMA_TOOLS = (
    '{% if tools is not none %}{{ \'<|im_start|>system\nWrite {"name": ..., "parameters": ...} to call one:\n\' }}'
    "{% for tool in tools %}{{ tool | tojson(indent=4) + '\n\n' }}{% endfor %}{{ '<|im_end|>' }}{% endif %}"
    "{% for m in messages %}"
    "{% if m.tool_calls %}"
    "{% if m.tool_calls | length != 1 %}{{ raise_exception('single tool-calls only') }}{% endif %}"
    "{% set call = m.tool_calls[0].function %}"
    '{{ \'<|im_start|>assistant\n\n{"name": "\' + call.name + \'", "parameters": \' }}'
    "{{ call.arguments | tojson + '}<|im_end|>' }}"
    "{% elif m.role == 'tool' %}{{ '<|im_start|>ipython\n\n' + m.content | tojson + '<|im_end|>' }}"
    "{% else %}{{ '<|im_start|>' + m.role + '\n\n' + m.content | trim + '<|im_end|>' }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n\n' }}{% endif %}"
)
# Shows the schema in words of its own, and writes calls in a way that nobody reads here.
PROSE_TOOLS = (
    "{% if tools %}{% for tool in tools %}{{ '<|im_start|>system\n' + tool.function.name + ' takes' }}"
    "{% for name, schema in tool.function.parameters.properties.items() %}{{ ' ' + name + ': ' }}"
    "{{ 'a text' if schema.type == 'string' else 'a thing' }}"
    "{% if name in tool.function.parameters.required %}{{ ', always' }}{% endif %}"
    "{% endfor %}{{ '<|im_end|>\n' }}{% endfor %}{% endif %}"
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content }}"
    "{% for call in m.tool_calls or [] %}{{ '\nCALL ' + call.function.name }}"
    "{% for name, value in call.function.arguments.items() %}{{ ' ' + name + '=' + value | string }}{% endfor %}"
    "{% endfor %}{{ '<|im_end|>\n' }}{% endfor %}" + _CHATML_END
)
# Leaves no place to be found in.
SHOUTING_TOOLS = CHATML_WITH_TOOLS.replace("tool | tojson", "tool | tojson | upper").replace(
    "message.content +", "message.content | upper +"
)
WITH_TOOLS = {
    "hermes": CHATML_WITH_TOOLS,
    "llama_json": LLAMA_TOOLS,
    "prose": PROSE_TOOLS,
    "shouting": SHOUTING_TOOLS,
}
