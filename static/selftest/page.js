// The self-test's page: measures when it is opened and whenever it is asked to, and says in words what that means.

import { eventTimes, socketTimes } from "./measure.js";
import { eventsVerdict, socketVerdict, worded } from "./verdict.js";

const { protocol, num, every_ms: everyMs, texts } = JSON.parse(document.getElementById("boot").textContent);
const again = document.getElementById("again");

const show = (id, { text, figures }) => (document.getElementById(id).textContent = worded(texts[text], figures));

/** One after the other, so that neither is in the other's way. */
async function measure() {
  again.disabled = true;
  for (const id of ["socket", "events"]) show(id, { text: "measuring", figures: {} });
  const { first, trips } = await socketTimes(protocol, num, everyMs);
  show("socket", socketVerdict(first, trips, num));
  show("events", eventsVerdict(await eventTimes(`${location.pathname}events`), num, everyMs));
  again.disabled = false;
}

again.addEventListener("click", measure);
measure();
