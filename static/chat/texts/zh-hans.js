// Chinese texts of the chat page, one file per part of the page.

import answer from "./zh-hans/answer.js";
import chats from "./zh-hans/chats.js";
import common from "./zh-hans/common.js";
import composer from "./zh-hans/composer.js";
import keys from "./zh-hans/keys.js";
import rail from "./zh-hans/rail.js";
import sheets from "./zh-hans/sheets.js";
import trouble from "./zh-hans/trouble.js";

export default { ...answer, ...chats, ...common, ...composer, ...keys, ...rail, ...sheets, ...trouble };
