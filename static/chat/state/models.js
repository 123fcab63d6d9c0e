// Which models are served, and which one answers in the shown chat. New chats take the one that was chosen last.

import { preferences } from "./preferences.js";

/** The model { name, max_context, is_trial } that answers next; the first one where the chosen one is gone, null for none. */
export function modelOf({ boot, conversation }) {
  const wanted = conversation.model || (conversation.id ? "" : preferences().model);
  return boot.models.find(({ name }) => name === wanted) ?? boot.models[0] ?? null;
}

/** What a new chat has to say of its model: its name, or nothing where it is the first one, which every chat begins with. */
export function chosenFor(store) {
  const model = modelOf(store);
  return model && model !== store.boot.models[0] ? model.name : "";
}
