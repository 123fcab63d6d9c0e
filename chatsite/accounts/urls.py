"""Routes of the doors for people."""

from __future__ import annotations

from django.urls import path

from chatsite.accounts import views

urlpatterns = [
    path("signin", views.sign_in, name="signin"),
    path("signup", views.sign_up, name="signup"),
    path("guest", views.guest, name="guest"),
    path("signout", views.sign_out, name="signout"),
]
