"""Whether an answer only says that there is none: kept, it would be everybody's refusal for as long as it lives.

Pure, and wrong to the careful side: an answer taken for a refusal is made once more. Reads the beginning, where models
refuse, in English and Chinese.
"""

from __future__ import annotations

import re

# Models refuse in their first words; further down "I cannot" is part of an answer.
_BEGINNING = 200

_CANNOT = (
    r"(?:can'?t|cannot|can not|won'?t|will not|(?:am |are |'m |'re )?(?:unable|not able|not allowed|not permitted) to|"
    r"must decline|have to decline|(?:don'?t|do not) have (?:access|the ability|information|any information))\b"
)
_ENGLISH = re.compile(
    r"^\W*(?:(?:(?:i'm |i am |we're |we are )?(?:so |very |really |terribly )?sorry\b|(?:my )?apologies\b|"
    r"i apologi[sz]e\b|unfortunately\b|as an? (?:ai|assistant|language model)\b)[^.!?\n]{0,60}?\b(?:i|we) ?|i ?)"
    + _CANNOT,
    re.IGNORECASE,
)
_CHINESE = re.compile(
    r"^\W*(?:(?:非常|很|十分|真的)?(?:抱歉|对不起|不好意思|遗憾)[^。！？\n]{0,30}?|"
    r"作为[^。！？\n]{0,20}?(?:助手|模型|AI)[^。！？\n]{0,10}?|我|目前我|恐怕我)"
    r"(?:无法|不能|没办法|没法|没有办法|没有权限|无权|不便|不可以)"
    r"(?:为您|为你|给您|给你|帮您|帮你|直接|继续|就此)?(?:回答|提供|帮|协助|满足|完成|访问|讨论|生成|处理|执行|回应|查询|获取|给出|确认)"
)


def is_refusal(answer: str) -> bool:
    beginning = answer[:_BEGINNING].replace("\u2019", "'")
    return bool(_ENGLISH.match(beginning) or _CHINESE.match(beginning))
