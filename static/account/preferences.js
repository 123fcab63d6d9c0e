// Colour scheme and language: kept in cookies, so that the server sends the page right from its first byte.

const YEAR_S = 31_536_000;
const THEMES = ["system", "light", "dark"];

function remember(name, value) {
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `${name}=${value}; path=/; max-age=${YEAR_S}; samesite=lax${secure}`;
}

function showTheme(theme) {
  document.documentElement.dataset.theme = theme;
  for (const button of document.querySelectorAll("[data-set-theme]")) {
    button.setAttribute("aria-pressed", String(button.dataset.setTheme === theme));
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-set-theme], [data-set-language]");
  if (!button) return;
  const { setTheme, setLanguage } = button.dataset;
  if (setTheme) {
    remember("theme", setTheme);
    showTheme(setTheme);
  } else {
    remember("django_language", setLanguage);
    location.reload();
  }
});

const current = document.documentElement.dataset.theme;
showTheme(THEMES.includes(current) ? current : "system");
