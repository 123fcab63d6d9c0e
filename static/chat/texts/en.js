// English texts of the chat page, one file per part of the page.

import answer from "./en/answer.js";
import chats from "./en/chats.js";
import common from "./en/common.js";
import composer from "./en/composer.js";
import keys from "./en/keys.js";
import rail from "./en/rail.js";
import sheets from "./en/sheets.js";
import trouble from "./en/trouble.js";

export default { ...answer, ...chats, ...common, ...composer, ...keys, ...rail, ...sheets, ...trouble };
