"""The pages' own files, under an address that names their version: a browser keeps them for ever and never mixes two.

The version is made of the contents of all files when the process starts. An address of another version gives the same
file without that promise, so that a page which was loaded before a restart still finds what it fetches late. While
debugging there is no version, because files change under the running process. Knows no page.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path, PurePosixPath

import django
from asgiref.sync import markcoroutinefunction, sync_to_async
from django.conf import settings
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.templatetags.static import static
from whitenoise.middleware import WhiteNoiseMiddleware

GetResponse = Callable[[HttpRequest], Awaitable[HttpResponseBase]]

FOR_EVER = "public, max-age=31536000, immutable"
_VERSIONED = re.compile(r"~([0-9a-f]{12})/")
_IMPORT = re.compile(r'^(?:import|export)\b[^"\';]*?(?:from\s*)?"(\.{1,2}/[^"]+)"', re.MULTILINE)


class VersionedStorage(StaticFilesStorage):
    """What `{% static %}` asks: `/static/~<version>/<name>`."""

    def url(self, name: str | None) -> str:
        if not name or settings.DEBUG:
            return super().url(name)
        return f"{self.base_url}~{version()}/{name}"


@cache
def version() -> str:
    """Twelve hexadecimal digits over every own file; those of Django's admin change with Django only."""
    digest = hashlib.blake2b(django.__version__.encode(), digest_size=6)
    for folder in map(Path, settings.STATICFILES_DIRS):
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            digest.update(str(path.relative_to(folder)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def modules_of(entry: str) -> tuple[str, ...]:
    """The addresses of every module that `entry` needs at once, itself first: without them named in the page, a browser
    finds them import by import, one journey per level."""
    found = [entry]
    for name in found:
        source = _source_of(name)
        for relative in _IMPORT.findall(source):
            needed = _joined(PurePosixPath(name).parent, relative)
            if needed not in found:
                found.append(needed)
    return tuple(static(name) for name in found)


def _source_of(name: str) -> str:
    (folder,) = map(Path, settings.STATICFILES_DIRS)
    return (folder / name).read_text()


def _joined(folder: PurePosixPath, relative: str) -> str:
    parts: list[str] = list(folder.parts)
    for part in PurePosixPath(relative).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


class StaticFiles(WhiteNoiseMiddleware):
    """WhiteNoise for an asynchronous chain: files are read on a thread, everything else passes by untouched."""

    sync_capable = False
    async_capable = True

    def __init__(self, get_response: GetResponse) -> None:
        with warnings.catch_warnings():
            # The collected folder is optional: finders serve the files of a checkout.
            warnings.filterwarnings("ignore", message="No directory at")
            super().__init__(get_response)
        markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(self.static_prefix):
            found = await sync_to_async(self._read, thread_sensitive=False)(request)
            if found is not None:
                return found
        passed_on: HttpResponseBase = await self.get_response(request)
        return passed_on

    def _read(self, request: HttpRequest) -> HttpResponse | None:
        named, path = self._parted(request.path_info)
        static_file = self.find_file(path) if self.autorefresh else self.files.get(path)
        if static_file is None:
            return None
        streamed = self.serve(static_file, request)
        content = b"".join(streamed.streaming_content)
        whole = HttpResponse(content, status=streamed.status_code, headers=dict(streamed.items()))
        streamed.close()
        if named == version():
            whole["Cache-Control"] = FOR_EVER
        return whole

    def _parted(self, path: str) -> tuple[str, str]:
        """The version that the address names, if any, and the address without it."""
        prefix: str = self.static_prefix
        match = _VERSIONED.match(path, len(prefix))
        return (match[1], prefix + path[match.end() :]) if match else ("", path)
