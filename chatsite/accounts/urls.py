"""Routes of the doors for people."""

from __future__ import annotations

from django.urls import path

from chatsite.accounts import key_page, usage_views, views
from chatsite.accounts.oidc import views as oidc

urlpatterns = [
    path("keys", key_page.keys, name="key-page"),
    path("usage", usage_views.own, name="usage"),
    path("usage/all", usage_views.everybody, name="usage-all"),
    path("signin", views.sign_in, name="signin"),
    path("signup", views.sign_up, name="signup"),
    path("guest", views.guest, name="guest"),
    path("signout", views.sign_out, name="signout"),
    path("oidc/start", oidc.start, name="oidc-start"),
    path("oidc/callback", oidc.callback, name="oidc-callback"),
    path("oidc/leave", oidc.leave, name="oidc-leave"),
]
