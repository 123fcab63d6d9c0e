// Puts the page together: one state, one line to the server, and the parts that show and change it.

import { Asker } from "./ask.js";
import { Composer } from "./composer.js";
import { ConversationKeeper } from "./conversation.js";
import { byId } from "./dom.js";
import { Drafts } from "./drafts.js";
import { setUpFrame } from "./frame.js";
import { FrameRouter } from "./frames.js";
import { ConversationList } from "./list.js";
import { LiveAnswers } from "./live.js";
import { Outbox } from "./outbox.js";
import { Rail } from "./rail.js";
import { Router } from "./router.js";
import { Socket } from "./socket.js";
import { Status } from "./status.js";
import { Store } from "./store.js";
import { Transcript } from "./transcript.js";

const boot = JSON.parse(byId("boot").textContent);
const store = new Store(boot);
const live = new LiveAnswers();
const outbox = new Outbox(boot.user.name);
const list = new ConversationList(store);
const keeper = new ConversationKeeper(store, live, outbox);
const router = new Router((id) => keeper.open(id));

let socket;
const say = (frame) => Boolean(socket?.send(frame));
keeper.say = say;
const asker = new Asker(store, outbox, say);
const composer = new Composer(store, asker, new Drafts(boot.user.name));
new Transcript(store, live, {
  regenerate: (message) => asker.regenerate(message),
  resend: (id) => asker.resend(id),
  takeBack: (id) => composer.start(asker.takeBack(id)),
  rate: (message, verdict) => keeper.rate(message, verdict),
  showVariant: (id) => keeper.showVariant(id),
  reload: () => keeper.open(store.conversation.id),
  start: (text) => composer.start(text),
});
new Rail(store, list, router);
new Status(store, () => socket.reconcile());
setUpFrame(router);

const frames = new FrameRouter({ store, live, keeper, asker, outbox, router, list, say });
keeper.open(boot.conversation);
list.load();

const url = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/chat`;
socket = new Socket(url, boot.protocol, (frame) => frames.route(frame), (status) => {
  store.connection = status;
  store.announce("connection");
});
