// What stands in the cells of a society's grid. Pure.
//
// Ratings come in tenths: 10 to 70; 0 for one that could not be read, -1 for an interaction that failed, null for one
// that is not over.

import { language, t } from "../words.js";

/** @typedef {Record<string, (number | null)[][]>} Ratings - by what is rated, by iteration, by agent */
/** @typedef {{first: number, span: number, begun: number, ratings: Ratings}} Part - of a society's iterations; they are counted from 0 */
/** @typedef {{look: string, text: string, said: string}} Cell */

const NUMBER = new Intl.NumberFormat(language(), { maximumFractionDigits: 1 });
const SIGNED = new Intl.NumberFormat(language(), { maximumFractionDigits: 1, signDisplay: "exceptZero" });
const CHANGES = ["revising", "drift"];

/**
 * Whether what is shown is a difference, from -6 to 6, rather than a rating.
 *
 * @param {string} shows
 */
export function isChange(shows) {
  return CHANGES.includes(shows);
}

/**
 * The tenths of each agent in an iteration. A difference of which one rating is missing is missing as that one is.
 *
 * @param {string} shows - what is rated, or "revising" or "drift"
 * @param {Part | undefined} part - that has the iteration
 * @param {Part | undefined} start - that has the first iteration
 * @param {number} iteration - from 0
 * @param {number} agents - how many there are
 */
export function values(shows, part, start, iteration, agents) {
  const of = (/** @type {Part | undefined} */ from, /** @type {string} */ name, /** @type {number} */ at) =>
    from?.ratings[name][at - from.first] ?? new Array(agents).fill(null);
  if (!isChange(shows)) return of(part, shows, iteration);
  const after = of(part, "alignment_after", iteration);
  const before = shows === "revising" ? of(part, "alignment_before", iteration) : of(start, "alignment_after", 0);
  return after.map((/** @type {number | null} */ now, /** @type {number} */ agent) => difference(now, before[agent]));
}

/** @type {Map<number | null, Cell>[]} of ratings and of differences, as there are few of them */
const KNOWN = [new Map(), new Map()];

/**
 * A cell as app/web/admin/societies_words.py has it.
 *
 * @param {number | null | {missing: number | null}} value
 * @param {boolean} change - whether it is a difference
 * @returns {Cell}
 */
export function cellOf(value, change) {
  if (value !== null && typeof value !== "number") return made(value, change);
  const known = KNOWN[Number(change)];
  const cell = known.get(value) ?? made(value, change);
  known.set(value, cell);
  return cell;
}

/**
 * @param {number | null} now
 * @param {number | null} then
 * @returns {number | null | {missing: number | null}}
 */
function difference(now, then) {
  for (const each of [now, then]) if (each === null || each <= 0) return { missing: each };
  return Number(now) - Number(then);
}

/**
 * @param {number | null | {missing: number | null}} value
 * @param {boolean} change
 * @returns {Cell}
 */
function made(value, change) {
  const missing = change && typeof value !== "number" ? (value?.missing ?? null) : value;
  if (missing === null) return { look: "rate-open", text: "", said: t("not over") };
  if (!change || typeof value !== "number") {
    if (missing === -1) return { look: "rate-none", text: "×", said: t("failed") };
    if (missing === 0) return { look: "rate-none", text: "–", said: t("not rated") };
  }
  const tenths = Number(value);
  // Differences from -6 to 6 have the same seven shades, two points to each.
  const shade = change ? 4 + Math.round(tenths / 20) : Math.floor((tenths + 5) / 10);
  const text = (change ? SIGNED : NUMBER).format(tenths / 10).replace("-", "−");
  return { look: `rate-${Math.min(7, Math.max(1, shade))}`, text, said: text };
}

/**
 * What stands at a step of the legend, from 1.
 *
 * @param {number} step
 * @param {boolean} change
 */
export function legend(step, change) {
  return change ? SIGNED.format(2 * (step - 4)).replace("-", "−") : String(step);
}

/**
 * The agent that an arrow key leads to from another, row by row; the same one at an edge.
 *
 * @param {number} agent
 * @param {string} key
 * @param {number} size - agents in a row
 */
export function neighbour(agent, key, size) {
  const row = Math.floor(agent / size);
  const column = agent % size;
  const clamp = (/** @type {number} */ at) => Math.min(size - 1, Math.max(0, at));
  /** @type {Record<string, number>} */
  const to = {
    ArrowLeft: row * size + clamp(column - 1),
    ArrowRight: row * size + clamp(column + 1),
    ArrowUp: clamp(row - 1) * size + column,
    ArrowDown: clamp(row + 1) * size + column,
    Home: row * size,
    End: row * size + size - 1,
  };
  return to[key];
}
