"""Who uses the site, how much they may use, and what they used. Knows nothing of conversations."""

from chatsite.accounts.models.ledger import Price, UsageDay, UsageRecord
from chatsite.accounts.models.people import ApiKey, Identity, SignInFailures, Tenant, User
from chatsite.accounts.models.quotas import Quota, QuotaHold, QuotaUse

__all__ = [
    "ApiKey",
    "Identity",
    "Price",
    "Quota",
    "QuotaHold",
    "QuotaUse",
    "SignInFailures",
    "Tenant",
    "UsageDay",
    "UsageRecord",
    "User",
]
