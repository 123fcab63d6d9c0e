// What is said aloud and shown above the composer: the line's state, troubles, and the end of an answer.

import { byId, el, iconButton } from "./dom.js";
import { t } from "./i18n.js";
import { troubleText } from "./trouble.js";
import { isLive } from "../state/tree.js";
import { ratedWords } from "../thread/thumbs.js";

// A short loss mends itself; only a longer one is worth a word.
const PATIENCE_MS = 1200;

export class Status {
  constructor(store, retry) {
    Object.assign(this, { store, retry, said: "" });
    this.line = byId("status");
    this.banner = byId("banner");
    this.notice = byId("notice");
    store.on("connection", () => this.connection());
    store.on("notice", (detail) => this.show(detail));
    store.on("answer", (message) => this.answer(message));
    store.on("rated", (message) => this.say(ratedWords(message) || t("rated.none")));
    store.on("elsewhere", (item) => this.say(t("status.elsewhere", { title: item?.title || t("untitled") })));
    store.on("thread", () => this.title());
    store.on("title", () => this.title());
    store.on("conversation", () => this.conversation());
  }

  connection() {
    clearTimeout(this.timer);
    const { connection } = this.store;
    if (connection === "open") {
      this.banner.hidden = true;
      return;
    }
    this.timer = setTimeout(() => this.showConnection(connection), connection === "signed-out" ? 0 : PATIENCE_MS);
  }

  showConnection(connection) {
    const button =
      connection === "signed-out"
        ? el("a", { className: "button", href: `/signin?next=${encodeURIComponent(location.pathname)}` }, t("sign_in"))
        : el("button", { type: "button", onclick: this.retry }, t("connect_now"));
    this.banner.replaceChildren(el("span", {}, t(`connection.${connection}`)), button);
    this.banner.hidden = false;
  }

  show(trouble) {
    const close = iconButton("close", t("dismiss"), () => (this.notice.hidden = true));
    this.notice.replaceChildren(el("span", {}, troubleText(trouble)), close);
    this.notice.hidden = false;
  }

  answer(message) {
    const words = isLive(message) ? t("status.answering") : t(`status.${message.state}`);
    if (words !== this.said) this.say(words);
  }

  say(words) {
    this.line.textContent = this.said = words;
  }

  conversation() {
    this.notice.hidden = true;
    this.say("");
    this.title();
  }

  title() {
    const { id, title } = this.store.conversation;
    const words = id ? title || t("untitled") : t("new_chat");
    byId("title").textContent = words;
    document.title = `${words} · Rill`;
  }
}
