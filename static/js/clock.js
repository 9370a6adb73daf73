// When the clock of a match warns. Pure.

const LAST = 15; // seconds before the end

/**
 * "soon" from half time on, "last" in the last 15 seconds, "" before. A short clock warns once, at half time.
 *
 * @param {number} left - seconds
 * @param {number} total - seconds of the whole clock
 * @param {number} after - the share of it that is over at the first warning
 * @returns {"" | "soon" | "last"}
 */
export function warning(left, total, after = 0.5) {
  const first = total - total * after;
  if (left <= Math.min(LAST, first)) return "last";
  return left <= first ? "soon" : "";
}

/**
 * Minutes and seconds, as a clock shows them.
 *
 * @param {number} seconds
 */
export function clockTime(seconds) {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
