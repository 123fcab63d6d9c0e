// One WebSocket per tab: says hello, keeps the line alive, and comes back by itself after a loss.
// Knows frames only as JSON; what they mean is for others.

const PING_EVERY_MS = 12_000;
const WELCOME_MS = 10_000;
const SILENCE_MS = 30_000;
const PROBE_MS = 3_000;
const FIRST_WAIT_MS = 400;
const LONGEST_WAIT_MS = 15_000;
const SIGNED_OUT = 4401;
const FORBIDDEN = 4403;

export class Socket {
  /**
   * `onFrame(frame)` gets every frame; `onStatus(status)` connecting, open, lost, offline or signed-out; `onUnopened()`
   * is called after an attempt that never came to a welcome.
   */
  constructor(url, protocol, { onFrame, onStatus, onUnopened }) {
    Object.assign(this, { url, protocol, onFrame, onStatus, onUnopened, losses: 0, isOpen: false, longestWait: LONGEST_WAIT_MS });
    this.connect();
  }

  /** False when the line is down: the caller keeps what it wanted to say. */
  send(frame) {
    if (!this.isOpen) return false;
    this.ws.send(JSON.stringify(frame));
    return true;
  }

  connect() {
    clearTimeout(this.retryTimer);
    if (this.ws) this.ws.onclose = this.ws.onmessage = null;
    this.onStatus(this.losses ? "lost" : "connecting");
    try {
      this.ws = new WebSocket(this.url);
    } catch {
      this.closed(0); // forbidden by the browser's policy
      return;
    }
    const { ws } = this;
    this.heard(WELCOME_MS);
    ws.onopen = () => ws.send(JSON.stringify({ type: "hello", protocol: this.protocol }));
    ws.onmessage = (event) => this.receive(JSON.parse(event.data));
    ws.onclose = (event) => this.closed(event.code);
  }

  receive(frame) {
    this.heard();
    if (frame.type === "pong") return;
    if (frame.type === "welcome") {
      this.isOpen = true;
      this.losses = 0;
      this.pinger = setInterval(() => this.send({ type: "ping" }), PING_EVERY_MS);
      this.onStatus("open");
    }
    this.onFrame(frame);
  }

  heard(patience = SILENCE_MS) {
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(() => this.drop(), patience);
  }

  /** Gives up on a line that may be half open, without waiting for the network to notice. */
  drop() {
    const { ws } = this;
    ws.onclose = ws.onmessage = null;
    ws.close();
    this.closed(0);
  }

  closed(code) {
    const wasOpen = this.isOpen;
    this.isOpen = false;
    clearTimeout(this.watchdog);
    clearInterval(this.pinger);
    if (code === SIGNED_OUT || code === FORBIDDEN) {
      this.isOver = true;
      this.onStatus("signed-out");
      return;
    }
    this.losses += 1;
    this.onStatus(navigator.onLine ? "lost" : "offline");
    const longest = Math.min(this.longestWait, FIRST_WAIT_MS * 2 ** (this.losses - 1));
    this.retryTimer = setTimeout(() => this.connect(), longest * (0.5 + Math.random() / 2));
    if (!wasOpen) this.onUnopened();
  }

  /** The tab is looked at again or the network is back: proves the line or makes a new one at once. */
  reconcile() {
    if (this.isOver) return;
    if (this.isOpen) {
      this.send({ type: "ping" });
      this.heard(PROBE_MS);
    } else if (this.ws?.readyState !== WebSocket.CONNECTING) this.connect();
  }
}
