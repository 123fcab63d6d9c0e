// A menu that opens at a button: arrow keys go through it, Escape and a click elsewhere close it.

import { el, icon } from "./dom.js";

const GAP_PX = 4;
const KEYS = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };

/**
 * Opens below `button` (above it where there is no room, over it where neither is enough). `items` are "line" or { icon, label, act, isDanger }; those
 * that say `isChosen` are a choice of one.
 */
export function openMenu(button, label, items) {
  const menu = el("div", { className: "menu", popover: "auto", role: "menu", "aria-label": label }, ...items.map((item) => entry(item, () => menu.hidePopover())));
  menu.addEventListener("keydown", (event) => move(event, menu));
  menu.addEventListener("toggle", (event) => event.newState === "closed" && closed(menu, button));
  document.body.append(menu);
  menu.showPopover();
  place(menu, button.getBoundingClientRect());
  button.setAttribute("aria-expanded", "true");
  (menu.querySelector("[aria-checked=true]") ?? menu.querySelector("button")).focus();
}

function entry(item, close) {
  if (item === "line") return el("hr", {});
  const act = () => {
    close();
    item.act();
  };
  const isChoice = item.isChosen !== undefined;
  const role = isChoice ? { role: "menuitemradio", "aria-checked": String(item.isChosen) } : { role: "menuitem" };
  return el("button", { type: "button", ...role, className: item.isDanger ? "danger" : null, onclick: act }, icon(isChoice ? "check" : item.icon), item.label);
}

function place(menu, { top, bottom, right }) {
  const { offsetWidth: width, offsetHeight: height } = menu;
  const isBelow = bottom + GAP_PX + height <= innerHeight || top < height;
  const wanted = isBelow ? bottom + GAP_PX : top - GAP_PX - height;
  menu.style.top = `${Math.max(GAP_PX, Math.min(wanted, innerHeight - height - GAP_PX))}px`;
  menu.style.left = `${Math.max(GAP_PX, Math.min(right - width, innerWidth - width - GAP_PX))}px`;
}

function move(event, menu) {
  const step = KEYS[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const entries = [...menu.querySelectorAll("button")];
  const place = entries.indexOf(document.activeElement) + step;
  const next = Number.isFinite(place) ? (place + entries.length) % entries.length : place < 0 ? 0 : entries.length - 1;
  entries[next].focus();
}

/** The focus goes back to the button, unless the chosen action has taken it elsewhere already. */
function closed(menu, button) {
  const hadFocus = menu.contains(document.activeElement) || document.activeElement === document.body;
  button.setAttribute("aria-expanded", "false");
  menu.remove();
  if (hadFocus && button.isConnected) button.focus();
}
