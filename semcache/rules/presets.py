"""The rules every installation starts with, as plain values for the migration and the admin's button.

Knows no models. Patterns and keywords are bilingual; a keyword counts from the start of a word.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

MINUTE_S = 60
DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Preset:
    """Field values of one rule; what is not named here keeps the model's default."""

    name: str
    priority: int
    mode: str
    sharing: str
    ttl_s: int
    keywords: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


PRESETS = (
    # First, so that "payment for the weather app" is a payment: money and orders are the asker's own, word for word.
    Preset(
        name="Payment and orders",
        priority=10,
        mode="exact",
        sharing="private",
        ttl_s=DAY_S,
        keywords=(
            "payment", "pay", "paid", "order", "refund", "invoice", "bill", "balance", "account", "transaction",
            "transfer", "charge", "card number", "credit card", "debit card", "bank", "salary", "delivery",
            "支付", "付款", "订单", "退款", "发票", "账单", "余额", "账户", "账号", "交易", "转账", "扣款", "银行卡",
            "信用卡", "工资", "物流", "快递",
        ),
        tags=("sensitive",),
    ),
    Preset(
        name="Weather",
        priority=20,
        mode="semantic",
        sharing="public",
        ttl_s=10 * MINUTE_S,
        keywords=(
            "weather", "forecast", "temperature outside", "rain", "snow", "humidity", "umbrella",
            "天气", "气温", "下雨", "下雪", "降雨", "湿度", "带伞", "预报",
        ),
        tags=("weather",),
    ),
    Preset(
        name="Company introduction",
        priority=30,
        mode="semantic",
        sharing="public",
        ttl_s=DAY_S,
        keywords=(
            "your company", "about the company", "company profile", "company introduction",
            "who founded the company", "opening hours", "business hours", "your headquarters", "your office",
            "公司介绍", "公司简介", "介绍一下公司", "介绍公司", "你们公司", "贵公司", "营业时间", "上班时间", "总部",
        ),
        tags=("company",),
    ),
    Preset(name="Everything else", priority=1000, mode="semantic", sharing="private", ttl_s=DAY_S),
)  # fmt: skip


def add_missing(rules: Any) -> list[str]:
    """Create in the model `rules` (CacheRule, also as a migration sees it) those presets whose name it lacks.

    Returns the names that were created. A rule of that name stays as the operator made it.
    """
    added = []
    for preset in PRESETS:
        values = asdict(preset) | {"keywords": list(preset.keywords), "tags": list(preset.tags)}
        _, is_new = rules.objects.get_or_create(name=values.pop("name"), defaults=values)
        if is_new:
            added.append(preset.name)
    return added
