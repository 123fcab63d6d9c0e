// The line where no WebSocket can be had: every frame of the page becomes a request, and answers are followed one by one.
// Knows which request a frame is; how an answer is followed is `follower`'s business.

import { Follower } from "./follower.js";
import { siteAnswers } from "./probe.js";
import { ApiError, request } from "./request.js";
import { sleep } from "./time.js";

const PROBE_EVERY_MS = 2_000;
const WATCH_EVERY_MS = 10_000;

export class Requests {
  constructor({ onFrame, onStatus, answerOf }) {
    Object.assign(this, { onFrame, onStatus, isUp: false, isClosed: false, watched: null, leaf: undefined });
    this.follower = new Follower({ onFrame, answerOf, onLost: (error) => this.failed(error), onKind: () => this.tell() });
    this.queue = Promise.resolve(); // questions keep their order
  }

  get kind() {
    return this.follower.kind;
  }

  open() {
    this.watching = setInterval(() => this.lookAround(), WATCH_EVERY_MS);
    this.up();
  }

  close() {
    this.isUp = false;
    this.isClosed = true;
    clearInterval(this.watching);
    this.follower.close();
  }

  /** False when the site cannot be reached. Frames that are only a convenience of the socket are taken and dropped. */
  send(frame) {
    if (!this.isUp) return false;
    this[`on_${frame.type}`]?.(frame);
    return true;
  }

  reconcile() {
    this.follower.reconcile();
    if (!this.isUp) this.comeBack();
  }

  on_send({ client_message_id, conversation, text, parent, branch, temporary }) {
    this.ask(client_message_id, async () => {
      const begun = { client_message_id, ...(temporary && { is_temporary: true }) };
      const id = conversation ?? (await request("POST", "/api/conversations", begun)).id;
      return request("POST", `/api/conversations/${id}/messages`, { client_message_id, text, ...(branch && { parent }) });
    });
  }

  on_regenerate({ client_message_id, message }) {
    this.ask(client_message_id, () => request("POST", `/api/messages/${message}/answers`, { client_message_id }));
  }

  on_continue({ client_message_id, message }) {
    this.ask(client_message_id, () => request("POST", `/api/messages/${message}/continue`, { client_message_id }));
  }

  on_continue({ client_message_id, message }) {
    this.ask(client_message_id, () => request("POST", `/api/messages/${message}/continue`, { client_message_id }));
  }

  on_stop({ generation }) {
    this.refusable({ generation }, () => request("POST", `/api/generations/${generation}/cancel`));
  }

  on_attach({ generation, after }) {
    this.follower.follow(generation, after);
  }

  on_detach({ generation }) {
    this.follower.leave(generation);
  }

  on_watch({ conversation }) {
    Object.assign(this, { watched: conversation, leaf: undefined });
  }

  ask(client_message_id, asking) {
    this.queue = this.queue.then(() => this.refusable({ client_message_id }, async () => this.accepted(client_message_id, await asking())));
  }

  accepted(client_message_id, { conversation, title, question, answer }) {
    const { id: generation } = answer.generation;
    this.onFrame({ type: "accepted", client_message_id, generation, conversation, user_message: question.id, answer: answer.id, parent: question.parent, title });
    this.follower.follow(generation, 0);
  }

  /** Does what was asked for; a refusal comes back as the frame that the socket would have sent. */
  async refusable(about, work) {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (!this.failed(error)) this.onFrame({ type: "error", code: error.code, message: error.message, retry_after_s: error.retry_after_s, resets_at: error.resets_at, ...about });
    }
  }

  /** Instead of notices: has the shown conversation gone on without us? */
  async lookAround() {
    const { watched } = this;
    if (!watched || !this.isUp || document.hidden) return;
    const { active_leaf } = await request("GET", `/api/conversations/${watched}`).catch(() => ({}));
    if (!active_leaf || watched !== this.watched) return;
    if (this.leaf !== undefined && this.leaf !== active_leaf) this.onFrame({ type: "started", conversation: watched });
    this.leaf = active_leaf;
  }

  /** True where the line itself is at fault and not what was asked. */
  failed({ status }) {
    if (status === 401) {
      this.close();
      this.onStatus("signed-out", this.kind);
    } else if (status === 0) this.comeBack();
    return status === 401 || status === 0;
  }

  async comeBack() {
    if (this.isProbing) return;
    this.isProbing = true;
    this.isUp = false;
    this.onStatus(navigator.onLine ? "lost" : "offline", this.kind);
    while (!this.isClosed && !(await siteAnswers())) await sleep(PROBE_EVERY_MS);
    this.isProbing = false;
    if (!this.isClosed) this.up();
  }

  up() {
    this.isUp = true;
    this.tell();
    this.onFrame({ type: "welcome" });
  }

  tell() {
    if (this.isUp) this.onStatus("open", this.kind);
  }
}
