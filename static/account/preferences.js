// Colour scheme, text size and language: kept in cookies, so that the server sends the page right from its first byte.

const YEAR_S = 31_536_000;
const root = document.documentElement;

const SETTERS = {
  theme(value) {
    remember("theme", value);
    root.dataset.theme = value;
    showTheme();
  },
  textSize(value) {
    remember("text_size", value);
    root.dataset.textSize = value;
  },
  language(value) {
    remember("django_language", value);
    location.reload();
  },
};

function remember(name, value) {
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `${name}=${value}; path=/; max-age=${YEAR_S}; samesite=lax${secure}`;
}

function showTheme() {
  for (const button of document.querySelectorAll("[data-set-theme]")) {
    button.setAttribute("aria-pressed", String(button.dataset.setTheme === root.dataset.theme));
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-set-theme], [data-set-language]");
  if (button?.dataset.setTheme) SETTERS.theme(button.dataset.setTheme);
  else if (button) SETTERS.language(button.dataset.setLanguage);
});
// A page that has controls of its own says what was chosen: { name, value }.
document.addEventListener("preference", ({ detail: { name, value } }) => SETTERS[name](value));

if (!["system", "light", "dark"].includes(root.dataset.theme)) root.dataset.theme = "system";
showTheme();
