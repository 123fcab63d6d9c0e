// A question in other words that keeps its answer.

import { rewordMessage } from "../line/api.js";
import { newId } from "../parts/ids.js";

/** True when it is stored and shown; else what is wrong is announced. */
export async function reword(store, keeper, message, text) {
  const { conversation } = store;
  try {
    await rewordMessage(message.id, newId(), text);
  } catch ({ code, retry_after_s }) {
    store.announce("notice", { code, retry_after_s });
    return false;
  }
  conversation.numChanges += 1;
  if (conversation === store.conversation) await keeper.reload();
  return true;
}
