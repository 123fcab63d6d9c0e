"""The operator's door to the cache, as Django's admin finds it: which page stands for which model."""

from __future__ import annotations

from django.contrib import admin

from semcache.admin_entries import CacheEntryAdmin
from semcache.admin_rules import CacheRuleAdmin
from semcache.models import CacheEntry, CacheRule

admin.site.register(CacheRule, CacheRuleAdmin)
admin.site.register(CacheEntry, CacheEntryAdmin)
