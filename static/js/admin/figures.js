// Figures of rounds, training jobs and campaigns in words. Pure.

import { language } from "../words.js";

const WHOLE = new Intl.NumberFormat(language(), { maximumFractionDigits: 2 });
const DIGITS = new Intl.NumberFormat(language(), { maximumSignificantDigits: 4, useGrouping: false });
const EXACT = ["loss", "eval_loss", "best_loss", "lr", "gradient_norm", "reward", "kl", "clip_fraction", "penalty"];
const CENTS = new Intl.NumberFormat(language(), { style: "currency", currency: "USD" });
const LESS = new Intl.NumberFormat(language(), { style: "currency", currency: "USD", minimumFractionDigits: 4 });

/**
 * A figure as it is shown: `left` are seconds, `cost` dollars.
 *
 * @param {string} name
 * @param {string | number | null} value
 */
export function worded(name, value) {
  if (value === null) return "";
  if (typeof value === "string") return value;
  if (name === "left") return span(value);
  if (name === "cost") return (value >= 1 || value === 0 ? CENTS : LESS).format(value);
  return (EXACT.includes(name) ? DIGITS : WHOLE).format(value).replace("-", "−");
}

/**
 * Seconds as minutes and seconds, or as hours too: 1:05, 2:00:09.
 *
 * @param {number} seconds
 */
function span(seconds) {
  const two = (/** @type {number} */ number) => String(number).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  return `${hours ? `${hours}:${two(minutes % 60)}` : minutes}:${two(seconds % 60)}`;
}
