// Puts the page together: one state, one line to the server, and the parts that show and change it.

import { Asker } from "./composer/ask.js";
import { Desk } from "./composer/desk.js";
import { ConversationKeeper } from "./thread/conversation.js";
import { byId } from "./parts/dom.js";
import { setUpFrame } from "./rail/frame.js";
import { FrameRouter } from "./line/frames.js";
import { Line } from "./line/line.js";
import { CornerMenu } from "./rail/cornermenu.js";
import { ConversationList } from "./rail/list.js";
import { LiveAnswers } from "./state/live.js";
import { Marks } from "./state/marks.js";
import { Outbox } from "./state/outbox.js";
import { Rail } from "./rail/rail.js";
import { Rater } from "./thread/rating.js";
import { Router } from "./rail/router.js";
import { Status } from "./parts/status.js";
import { Store } from "./state/store.js";
import { Tabs } from "./state/tabs.js";
import { reword } from "./thread/reword.js";
import { Transcript } from "./thread/transcript.js";

const boot = JSON.parse(byId("boot").textContent);
const store = new Store(boot);
const live = new LiveAnswers();
const outbox = new Outbox(boot.user.name, new Tabs());
const marks = new Marks(boot.user.name);
const list = new ConversationList(store, marks);
const keeper = new ConversationKeeper(store, live, outbox);
const router = new Router((id) => keeper.open(id));

let line;
const say = (frame) => Boolean(line?.send(frame));
keeper.say = say;
const asker = new Asker(store, outbox, say);
const desk = new Desk(store, asker, outbox);
const rater = new Rater(store);
new Transcript(store, live, {
  regenerate: (message) => asker.regenerate(message),
  resend: (id) => asker.resend(id),
  edit: (message, text) => asker.edit(message, text),
  reword: (message, text) => reword(store, keeper, message, text),
  goOn: (message) => asker.goOn(message),
  withdraw: (id) => asker.takeBack(id),
  rate: (message, verdict) => rater.rate(message, verdict),
  explain: (message, reason) => rater.explain(message, reason),
  showVariant: (id, instead) => keeper.showVariant(id, instead),
  loadEarlier: () => keeper.loadEarlier(),
  maxChars: boot.limits.max_message_chars,
  reload: () => keeper.open(store.conversation.id),
  start: (text) => desk.composer.start(text),
  offers: desk.offers,
});
const rail = new Rail(store, list, router, marks);
new CornerMenu(store, list, rail.menu);
new Status(store, () => line.reconcile());
setUpFrame(router);

const frames = new FrameRouter({ store, live, keeper, asker, outbox, router, list, say, temporary: desk.temporary, isLeaving: (id) => rail.acts.leaving.has(id) });
keeper.open(boot.conversation);
list.load();

outbox.listen({ changed: () => keeper.pendingChanged(), adopted: (entry) => asker.adopted(entry) });
line = new Line({
  protocol: boot.protocol,
  onFrame: (frame) => frames.route(frame),
  onStatus: (connection, kind) => {
    Object.assign(store, { connection, line: kind });
    store.announce("connection");
  },
  answerOf: (generation) => live.get(generation)?.answer,
});
