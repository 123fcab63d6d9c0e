"""The prompt templates every installation starts with, as plain values for the migration.

Each stands in both languages of the site; the page offers those of its own. Knows no models.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Preset:
    """Field values of one template of everybody's."""

    title: str
    body: str
    language: str
    is_starter: bool = False


# The last variable, or the one named `text`, gets what stands in the message field already.
PRESETS = (
    Preset(
        "Translate",
        "Translate the text below into {{language}}. Keep its tone and its layout. Give the translation only."
        "\n\n{{text}}",
        "en",
        is_starter=True,
    ),
    Preset(
        "Summarise",
        "Sum up the text below in a few short points, the most important one first. Add nothing that it does not say."
        "\n\n{{text}}",
        "en",
        is_starter=True,
    ),
    Preset(
        "Draft a reply",
        "Draft a reply to the message below, in its language. What I want to say: {{answer}}\n\n"
        "The message:\n\n{{message}}",
        "en",
        is_starter=True,
    ),
    Preset(
        "Rewrite politely",
        "Rewrite the text below so that it is polite, clear and friendly, in its own language. Change nothing of what "
        "it means.\n\n{{text}}",
        "en",
    ),
    Preset(
        "Correct spelling and grammar",
        "Correct spelling, grammar and punctuation of the text below and leave everything else as it is. Give the "
        "corrected text, then list what you changed.\n\n{{text}}",
        "en",
    ),
    Preset(
        "Explain code",
        "Explain step by step what the code below does, for somebody who sees it for the first time. Say what may go "
        "wrong in it.\n\n```\n{{code}}\n```",
        "en",
    ),
    Preset(
        "翻译",
        "请把下面的文字翻译成{{语言}}。保持原有的语气和格式，只给出译文。\n\n{{文本}}",
        "zh-hans",
        is_starter=True,
    ),
    Preset(
        "总结要点",
        "请用几条简短的要点总结下面的文字，最重要的放在最前面，不要添加文中没有的内容。\n\n{{文本}}",
        "zh-hans",
        is_starter=True,
    ),
    Preset(
        "起草回复",
        "请用来信所用的语言，为下面的来信起草一封回复。我想表达的是：{{意思}}\n\n来信：\n\n{{来信}}",
        "zh-hans",
        is_starter=True,
    ),
    Preset(
        "礼貌改写", "请改写下面的文字，使其礼貌、清楚、友好，语言和原意都保持不变。\n\n{{文本}}", "zh-hans"
    ),
    Preset(
        "修改错别字和语病",
        "请改正下面文字中的错别字、语病和标点，其余保持不变。先给出改正后的文字，再列出改动之处。\n\n{{文本}}",
        "zh-hans",
    ),
    Preset(
        "解释代码",
        "请为第一次看到下面代码的人逐步解释它做了什么，并指出可能出错的地方。\n\n```\n{{代码}}\n```",
        "zh-hans",
    ),
)


def add_missing(templates: Any) -> list[str]:
    """Create in the model `templates` (PromptTemplate, also as a migration sees it) those that everybody lacks.

    Returns the titles that were created. One of the same title and language stays as staff made it.
    """
    added = []
    for preset in PRESETS:
        everybodys = templates.objects.filter(owner=None, title=preset.title, language=preset.language)
        if not everybodys.exists():
            templates.objects.create(owner=None, **asdict(preset))
            added.append(preset.title)
    return added
