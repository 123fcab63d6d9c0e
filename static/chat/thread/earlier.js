// The way to messages above the loaded ones: they come when the reader comes near, and by a button where that failed.

import { el } from "../parts/dom.js";
import { t } from "../parts/i18n.js";

const NEAR = "1200px 0px 0px 0px";

export class EarlierMessages {
  /** `load()` adds what is above and returns false when it could not; `box` is what scrolls. */
  constructor(box, load) {
    this.load = load;
    this.node = el("button", { type: "button", className: "earlier quiet", onclick: () => this.fetch() }, t("earlier"));
    this.near = new IntersectionObserver((entries) => entries.at(-1).isIntersecting && this.fetch(), { root: box, rootMargin: NEAR });
  }

  async fetch() {
    if (this.isLoading) return;
    this.isLoading = true;
    this.near.unobserve(this.node);
    const hasWorked = await this.load();
    this.isLoading = false;
    // Looked at anew: a short page of messages leaves the button where it was. After a failure only a person asks again.
    if (hasWorked) this.near.observe(this.node);
  }

  /** The button, watched; to be put above the first message. */
  watched() {
    if (!this.node.isConnected && !this.isLoading) this.near.observe(this.node);
    return this.node;
  }
}
