// The page's line to the server: a WebSocket where one can be had, else requests and event streams, else polling.
// All take and give the same frames, so the rest of the page knows no difference.

import { siteAnswers } from "./probe.js";
import { Requests } from "./requests.js";
import { Socket } from "./socket.js";

// A socket that was never welcomed so often, one after the other, while the site answers, is blocked on its way.
const BLOCKED_AFTER = 2;
const RARE_RETRY_MS = 60_000;
const USUAL_RETRY_MS = 15_000;

export class Line {
  /**
   * `onFrame(frame)` gets every frame. `onStatus(status, kind)`: connecting, open, lost, offline or signed-out, and
   * socket, events or polling. `answerOf(generation)` names the message that an answer fills.
   */
  constructor({ protocol, onFrame, onStatus, answerOf }) {
    Object.assign(this, { onFrame, onStatus, answerOf, requests: null, numBlocked: 0 });
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this.socket = new Socket(`${scheme}://${location.host}/ws/chat`, protocol, {
      onFrame,
      onStatus: (status) => this.socketIs(status),
      onUnopened: () => this.unopened(),
    });
    window.addEventListener("online", () => this.online());
    window.addEventListener("offline", () => onStatus("offline", this.kind));
    document.addEventListener("visibilitychange", () => this.looked());
  }

  get kind() {
    return this.requests?.kind ?? "socket";
  }

  /** False when the line is down: the caller keeps what it wanted to say. */
  send(frame) {
    return (this.requests ?? this.socket)?.send(frame) ?? false;
  }

  /** A line that outlived the loss says nothing by itself; whether it did is proved at once. */
  online() {
    if (this.socket.isOpen && !this.requests) this.onStatus("open", this.kind);
    this.reconcile();
  }

  reconcile() {
    this.requests?.reconcile();
    this.socket.reconcile();
  }

  /** A page that is looked at again may have a line that died meanwhile; one that is hidden needs no streams. */
  looked() {
    if (document.visibilityState === "visible") this.reconcile();
    else this.requests?.reconcile();
  }

  /** While requests carry the page, only a socket that opens, or an end of the session, is news. */
  socketIs(status) {
    if (status === "open") this.leaveRequests();
    if (status === "signed-out") this.requests?.close();
    if (!this.requests || status === "signed-out") this.onStatus(status, this.kind);
  }

  async unopened() {
    if (this.requests) return;
    this.numBlocked = (await siteAnswers()) ? this.numBlocked + 1 : 0;
    if (this.numBlocked < BLOCKED_AFTER || this.socket.isOpen || this.socket.isOver || this.requests) return;
    this.socket.longestWait = RARE_RETRY_MS;
    this.requests = new Requests(this);
    this.requests.open();
  }

  leaveRequests() {
    this.requests?.close();
    this.requests = null;
    this.numBlocked = 0;
    this.socket.longestWait = USUAL_RETRY_MS;
  }
}
