// A mark in the place of characters that show nothing or turn the text around them; app/matches/invisible.py says which.

const MARK = "\ufffd";
const SUSPECT =
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: joiners and selectors are looked for one by one
  /[\u200c\u200d\ufe00-\ufe0f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

/**
 * The text with marks.
 *
 * @param {string} text
 */
export function visible(text) {
  return text.replace(SUSPECT, (found, at) => (hasAUse(found, text[at - 1] ?? "", text[at + found.length] ?? "") ? found : MARK));
}

/**
 * @param {string} found
 * @param {string} before - the character before it
 * @param {string} after
 */
function hasAUse(found, before, after) {
  if (found === "\u200c" || found === "\u200d") return before >= "\u0600" && after >= "\u0600";
  if (found >= "\ufe00" && found <= "\ufe0f") return before >= "\u2000" || before === "©" || before === "®" || after === "\u20e3";
  return false;
}
