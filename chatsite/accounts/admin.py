"""Tenants, users and keys in the admin. A key's secret is shown once, when it is made."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import UserCreationForm
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chatsite.accounts.forms import StaffSignInForm
from chatsite.accounts.keys import create_key
from chatsite.accounts.ledger import admin as ledger_admin  # noqa: F401 - registers its tables
from chatsite.accounts.models import ApiKey, Identity, Quota, Tenant, User
from chatsite.accounts.quota_admin import QuotaAdmin
from chatsite.chat.erasure import erase_user_rows
from chatsite.chat.models import Conversation, Message

admin.site.login_form = StaffSignInForm
admin.site.register(Quota, QuotaAdmin)


@admin.register(Tenant)
class TenantAdmin(admin.ModelAdmin):
    list_display = ("name", "slug", "is_default", "created_at")
    search_fields = ("name", "slug")


class NewUserForm(UserCreationForm):
    class Meta:
        model = User
        fields: ClassVar = ["username", "tenant"]


@admin.register(User)
class PeopleAdmin(UserAdmin):
    add_form = NewUserForm
    list_display = ("username", "tenant", "is_guest", "is_staff", "is_active", "last_login")
    list_filter = ("is_guest", "is_staff", "is_active", "tenant")
    list_select_related = ("tenant",)
    fieldsets = (
        *(UserAdmin.fieldsets or ()),
        (_("Business line"), {"fields": ("tenant", "is_guest", "guest_until")}),
    )
    add_fieldsets = (
        (None, {"classes": ("wide",), "fields": ("username", "tenant", "password1", "password2")}),
    )

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"tenant": Tenant.objects.default().pk}

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Everything of theirs goes with them. It is counted, for what people wrote is not shown to staff."""
        users = [user.pk for user in objs]
        theirs = {
            Conversation: Conversation.objects.filter(owner__in=users),
            Message: Message.objects.filter(conversation__owner__in=users),
            ApiKey: ApiKey.objects.filter(user__in=users),
        }
        counts = {model._meta.verbose_name_plural: rows.count() for model, rows in theirs.items()}
        return [str(user) for user in objs], {User._meta.verbose_name_plural: len(users), **counts}, set(), []

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        erase_user_rows(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for user in queryset:
            erase_user_rows(user)


@admin.register(Identity)
class IdentityAdmin(admin.ModelAdmin):
    """Who signs in by a provider as whom. Staff join an account that exists to its identity here."""

    list_display = ("user", "issuer", "subject", "created_at", "last_used_at")
    list_select_related = ("user",)
    search_fields = ("user__username", "subject")
    raw_id_fields = ("user",)
    readonly_fields = ("created_at", "last_used_at")


class NewKeyForm(forms.ModelForm):
    scopes = forms.MultipleChoiceField(choices=ApiKey.Scope.choices, widget=forms.CheckboxSelectMultiple)

    class Meta:
        model = ApiKey
        fields: ClassVar = ["user", "name", "scopes", "expires_at"]


@admin.register(ApiKey)
class ApiKeyAdmin(admin.ModelAdmin):
    list_display = (
        "prefix",
        "name",
        "user",
        "tenant",
        "created_at",
        "expires_at",
        "revoked_at",
        "last_used_at",
    )
    list_filter = ("tenant",)
    list_select_related = ("user", "tenant")
    search_fields = ("name", "prefix", "user__username")
    readonly_fields = ("prefix", "user", "tenant", "scopes", "created_at", "revoked_at", "last_used_at")
    fields = ("name", "expires_at", *readonly_fields)
    actions = ("revoke_keys",)

    def get_form(
        self, request: HttpRequest, obj: ApiKey | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        return super().get_form(request, obj, change, **kwargs) if change else NewKeyForm

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        return self.fields if obj else NewKeyForm.Meta.fields

    def get_readonly_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        return self.readonly_fields if obj else ()

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        made, secret = create_key(obj.user, obj.name, obj.scopes, obj.expires_at)
        obj.pk, obj.prefix, obj.tenant = made.pk, made.prefix, made.tenant
        messages.warning(request, _("The key, shown this once: %(key)s") % {"key": secret})

    @admin.action(description=_("Revoke the selected keys"))
    def revoke_keys(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        num_revoked = queryset.filter(revoked_at__isnull=True).update(revoked_at=timezone.now())
        self.message_user(request, _("%(count)d keys were revoked.") % {"count": num_revoked})
