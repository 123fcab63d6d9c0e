"""What work costs: the price in force for a model at a moment, applied to counts. Exact decimals, no floats.

Knows the price table; does not know who pays or where counts come from.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from chatsite.accounts.models import Price
from inference.types import Usage

MILLION, HOUR = Decimal(1_000_000), Decimal(3600)
# The columns' scale: a token of the cheapest models costs about 0.00000001.
SMALLEST = Decimal("0.000000001")


def price_of(model: str, at: datetime) -> Price | None:
    """The price in force: the model's own, else that of the longest beginning with a *; of each the newest by `at`."""
    patterns = [model, *(f"{model[:length]}*" for length in range(len(model) + 1))]
    valid = Price.objects.filter(model__in=patterns, valid_from__lte=at)
    newest = valid.order_by("model", "-valid_from").distinct("model")
    return max(newest, key=lambda price: (price.model == model, len(price.model)), default=None)


def cost_of(price: Price | None, work: Usage) -> Decimal:
    """What `work` costs. Prompt tokens cost once they were read or reused; unseen tokens cost device-time only."""
    if price is None:
        return Decimal(0)
    tokens = (
        price.per_million_prompt * work.prefilled_tokens
        + price.per_million_reused * work.reused_tokens
        + price.per_million_generated * work.generated_tokens
    )
    device = price.per_device_hour * Decimal(repr(work.device_seconds))
    return (tokens / MILLION + device / HOUR).quantize(SMALLEST)
