"""Sign in and sign up, with errors at their fields."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import AuthenticationForm, UserCreationForm
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from chatsite.accounts import brake
from chatsite.accounts.models import User


class SignInForm(AuthenticationForm):
    """A name and a password; after too many failed tries from an address nothing is checked for a while."""

    def clean(self) -> dict[str, Any]:
        assert self.request is not None
        address, name = brake.client_address(self.request), self.cleaned_data.get("username") or ""
        is_try = bool(name and self.cleaned_data.get("password"))
        if is_try and not brake.may_try(address, name, is_known=brake.is_known(self.request, name)):
            raise ValidationError(
                _("Too many failed tries. Wait a few minutes and try again."), code="braked"
            )
        cleaned = super().clean()
        # A form without a name or a password passes here unchecked; only the right password clears the count.
        if self.user_cache is not None:
            brake.forget_failures(address, name)
        return cleaned


class StaffSignInForm(SignInForm, AdminAuthenticationForm):
    """The admin's own sign-in, behind the same brake."""


class SignUpForm(UserCreationForm):
    """A new account of one's own."""

    class Meta:
        model = User
        fields: ClassVar = ["username"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """What a password needs is said before one is refused; the rest needs no words."""
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.help_text = ""
        self.fields["password1"].help_text = _(
            "At least 8 characters, not only digits, and no password that many people use."
        )

    def clean_username(self) -> str:
        name = super().clean_username()
        if name and name.lower().startswith("guest-"):
            raise ValidationError(_("Names that begin with guest- are for guests."), code="reserved")
        return name

    def validate_password_for_user(self, user: User, password_field_name: str = "password1") -> None:  # noqa: S107 - a field
        """What is wrong with the password stands where it is chosen, not where it is typed again."""
        super().validate_password_for_user(user, password_field_name)  # type: ignore[misc]

    def save(self, commit: bool = True) -> User:
        assert commit, "a user needs its business line, which the manager gives"
        return User.objects.create_user(
            self.cleaned_data["username"], password=self.cleaned_data["password1"]
        )
