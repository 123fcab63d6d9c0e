"""Texts that try to run, load or hide something, by the hundred: what HTML can do, wrapped in what Markdown can do."""

from __future__ import annotations

EFFECT = "top.owned=1"
VECTORS = (
    f"<script>{EFFECT}</script>",
    f"<img src=x onerror={EFFECT}>",
    f"<svg onload={EFFECT}>",
    f"<svg><animate onbegin={EFFECT} attributeName=x dur=1s>",
    f'<iframe src="javascript:{EFFECT}"></iframe>',
    f'<iframe srcdoc="<script>{EFFECT}</script>"></iframe>',
    f"<body onload={EFFECT}>",
    f"<details open ontoggle={EFFECT}>",
    f"<input autofocus onfocus={EFFECT}>",
    f"<video><source onerror={EFFECT}>",
    f"<math><mtext></table><img src=x onerror={EFFECT}>",
    f'<object data="javascript:{EFFECT}"></object>',
    f'<embed src="javascript:{EFFECT}">',
    f'<a href="javascript:{EFFECT}" id=status>x</a>',
    f'<form action="javascript:{EFFECT}"><button autofocus>x</button></form>',
    f'<meta http-equiv=refresh content="0;url=javascript:{EFFECT}">',
    "<link rel=stylesheet href=//evil.example/x.css>",
    '<style>@import "//evil.example/x.css"</style>',
    "<base href=//evil.example/>",
    f"<template><script>{EFFECT}</script></template>",
    f'<noscript><p title="</noscript><img src=x onerror={EFFECT}>">',
    f"<x tabindex=1 onfocus={EFFECT} style=position:fixed;inset:0>",
    f"</textarea></title><script>{EFFECT}</script>",
    f"<marquee onstart={EFFECT}>x</marquee>",
    f"<!--><img src=x onerror={EFFECT}-->",
)
# Where a text in angle brackets has to stay in sight as it was written.
LITERAL = ("{}", "some words {} and more", "> {}", "- {}", "```\n{}\n```", "    {}", "# {}", "**{}**")
OTHERS = (
    "| a | b |\n|---|---|\n| {} | x |",
    "``{}``",
    "[{}](https://example.org)",
    '[x](https://example.org "{}")',
    "[x](<{}>)",
    "![{}](https://example.org/p.png)",
    "```{}\nx\n```",
    "$\\text{{{}}}$",
    "$$\n{}\n$$",
    "[ref]: {}\n[ref]",
    "&lt;b&gt;{}&#60;script&#62;",
    "\\{}",
)
LITERAL_TEXTS = tuple((shape.format(vector), vector) for vector in VECTORS for shape in LITERAL)
PAYLOADS = tuple(shape.format(vector) for vector in VECTORS for shape in (*LITERAL, *OTHERS))

ADDRESSES = (
    f"javascript:{EFFECT}",
    f"JaVaScRiPt:{EFFECT}",
    f"java\tscript:{EFFECT}",
    f"javascript&colon;{EFFECT}",
    f"&#106;avascript:{EFFECT}",
    f"%6aavascript:{EFFECT}",
    f"data:text/html,<script>{EFFECT}</script>",
    f"vbscript:{EFFECT}",
    "file:///etc/passwd",
    "blob:https://evil.example/x",
    "https://tracker.example/p.png?q=secret",
    "//tracker.example/p.png?q=secret",
)
FORMS = ("[x]({0})", "![x]({0})", "<{0}>", '[x](<{0}> "t")', "[![a]({0})]({0})")
LINKS = tuple(form.format(address) for address in ADDRESSES for form in FORMS)
