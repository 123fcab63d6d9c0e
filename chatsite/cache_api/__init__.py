"""The semantic cache's administration for programs: what staff do on its pages, with a key or a session of theirs.

A door: it parses, calls what the pages call, and formats. Every rule, check and audit line is `semcache`'s.
"""

from __future__ import annotations

from ninja import Router

from chatsite.cache_api.staff import STAFF

router = Router(tags=["cache administration"], auth=STAFF)
router.add_router("/rules", "chatsite.cache_api.rules.router")
router.add_router("/entries", "chatsite.cache_api.entries.router")
router.add_router("/imports", "chatsite.cache_api.imports.router")
router.add_router("/cases", "chatsite.cache_api.cases.router")
router.add_router("/comparisons", "chatsite.cache_api.comparisons.router")
router.add_router("", "chatsite.cache_api.questions.router")
