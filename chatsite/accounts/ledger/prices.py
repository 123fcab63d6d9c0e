"""What work costs: the price in force for a model at a moment, applied to counts. Exact decimals, no floats.

Knows the price table; does not know who pays or where counts come from.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from chatsite import statements
from chatsite.accounts.models import Price
from inference.types import Usage

MILLION, HOUR = Decimal(1_000_000), Decimal(3600)
# The columns' scale: a token of the cheapest models costs about 0.00000001.
SMALLEST = Decimal("0.000000001")


# All columns, in the model's order.
OF_PRICE = (
    "id", "model", "valid_from", "currency",
    "per_million_prompt", "per_million_reused", "per_million_generated", "per_device_hour",
)  # fmt: skip
PRICE_OF = f"""
SELECT {", ".join(OF_PRICE)} FROM accounts_price
 WHERE model = ANY(%s) AND valid_from <= %s ORDER BY model = %s DESC, length(model) DESC, valid_from DESC LIMIT 1
"""  # noqa: S608 - names of columns


def price_of(model: str, at: datetime) -> Price | None:
    """The price in force: the model's own, else that of the longest beginning with a *; of each the newest by `at`."""
    patterns = [model, *(f"{model[:length]}*" for length in range(len(model) + 1))]
    row = statements.first(PRICE_OF, [patterns, at, model])
    return None if row is None else Price.from_db(None, OF_PRICE, row)


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
