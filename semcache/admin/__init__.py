"""The operator's door to the cache, as Django's admin finds it: which page stands for which model."""

from __future__ import annotations

from django.contrib import admin

from semcache.admin.cases import CacheCaseAdmin
from semcache.admin.entries import CacheEntryAdmin
from semcache.admin.rules import CacheRuleAdmin
from semcache.models import CacheCase, CacheEntry, CacheRule

admin.site.register(CacheRule, CacheRuleAdmin)
admin.site.register(CacheEntry, CacheEntryAdmin)
admin.site.register(CacheCase, CacheCaseAdmin)
