// What an offer of Deal or No Deal says, in the game's own language and in the reader's. Pure but for the words.

import { moves } from "../state.js";
import { t, tn } from "../words.js";

/**
 * @typedef {"book" | "hat" | "ball"} Kind
 * @typedef {Record<Kind, number>} Share - how many of each kind
 * @typedef {import("../state.js").Entry} Entry
 * @typedef {import("../state.js").View} View
 */

/** @type {Kind[]} in the order of a proposal's text */
export const KINDS = ["book", "hat", "ball"];
const HIDDEN = t("Your partner has made an offer. It stays hidden until you make yours. If the two fit together, it is a deal.");
const NEVER_SHOWN = t("Your partner made an offer. The game ended before it was shown.");

const AMOUNTS = {
  book: (/** @type {number} */ count) => tn("%(num)s book", "%(num)s books", count),
  hat: (/** @type {number} */ count) => tn("%(num)s hat", "%(num)s hats", count),
  ball: (/** @type {number} */ count) => tn("%(num)s ball", "%(num)s balls", count),
};

/**
 * A share in words: "1 book, 2 hats and 1 ball".
 *
 * @param {Share} share
 */
export function things(share) {
  const named = KINDS.filter((kind) => share[kind]).map((kind) => AMOUNTS[kind](share[kind]).replaceAll(" ", "\u00a0"));
  const last = named.pop();
  if (last === undefined) return t("nothing");
  return named.length === 0 ? last : t("%(some)s and %(last)s", { some: named.join(", "), last });
}

/**
 * The share that a number of each kind makes.
 *
 * @param {(kind: Kind) => number} count
 * @returns {Share}
 */
export function shareBy(count) {
  return { book: count("book"), hat: count("hat"), ball: count("ball") };
}

/**
 * The share that a proposal's text asks for. The rules let nothing else than this form through.
 *
 * @param {string} text
 */
export function shareOf(text) {
  const numbers = (text.slice(text.indexOf("(")).match(/\d+/g) ?? []).map(Number);
  return shareBy((kind) => numbers[KINDS.indexOf(kind)]);
}

// Marks of the game's own language that a person writes are words like any others, so they are sent in brackets that
// only look alike, and shown as they were written.
const MARKS = /\[(message|propose|end)\]/giu;
const asWords = (/** @type {string} */ body) => body.replace(MARKS, "［$1］");
const asWritten = (/** @type {string} */ text) => text.replaceAll("［", "[").replaceAll("］", "]");

/**
 * How the conversation puts an entry.
 *
 * @param {Entry} entry
 * @param {boolean} over - whether the match is
 */
export function words(entry, over) {
  if (entry.kind === "message") return { text: asWritten((entry.text ?? "").replace(/^\s*\[message\]\s*/i, "")), aside: false };
  if (entry.kind !== "proposal") return { text: entry.text ?? "", aside: true };
  if (entry.text === null) return { text: over ? NEVER_SHOWN : HIDDEN, aside: true };
  const asked = { things: things(shareOf(entry.text)) };
  return {
    text: entry.by === "you" ? t("You made your offer: %(things)s for you.", asked) : t("Your partner made an offer: %(things)s for them.", asked),
    aside: true,
  };
}

/**
 * A move's text in the game's own language.
 *
 * @param {string} kind
 * @param {any} body - the words of a message, or the share of a proposal
 */
export function compose(kind, body) {
  if (kind === "message") return `[message] ${asWords(body)}`;
  return `[propose] (${body.book} books, ${body.hat} hats, ${body.ball} balls)`;
}

/** @param {View} view */
export const proposals = (view) => moves(view).filter((move) => move.kind === "proposal");

/**
 * Which of the template's words this turn has.
 *
 * @param {View} view
 */
export function turn(view) {
  if (proposals(view).length > 0) return `${view.to_move} offer`;
  return view.to_move === "you" && view.ply === 0 ? "you first" : view.to_move;
}
