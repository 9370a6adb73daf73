// A seat's view of its match, and how a change makes the next one. Pure; docs/protocol.md has the shapes.

/**
 * @typedef {object} Entry
 * @property {number} ply
 * @property {"you" | "partner" | "system"} by
 * @property {string} kind
 * @property {string | null} text - null while it is hidden from this seat
 * @property {string} [at] - ISO 8601, in UTC
 *
 * @typedef {object} Clock
 * @property {string} deadline - ISO 8601, in UTC
 * @property {"turn" | "match"} of
 * @property {number} left - seconds, when the view was made
 * @property {number} [total] - seconds of the whole clock
 *
 * @typedef {object} View
 * @property {string} match
 * @property {"waiting" | "playing" | "over"} status
 * @property {number} ply
 * @property {"you" | "partner" | null} to_move
 * @property {Entry[]} transcript
 * @property {Record<string, any>} facts - of the game
 * @property {Record<string, any>} secret - of the game
 * @property {{kind: string}[]} may
 * @property {Clock | null} clock
 * @property {{reason: string, winner: "you" | "partner" | null} | null} outcome
 *
 * @typedef {Partial<View> & {match: string, ply: number}} Change
 *
 * @typedef {object} Move - one's own, on its way to the server
 * @property {string} move_id
 * @property {number} ply
 * @property {string} kind
 * @property {string} text
 * @property {Record<string, number>} [timing] - how it was written, in a study
 * @property {any} body - what the game's module composed the text of
 * @property {string} at - ISO 8601, in UTC
 */

/** @param {Entry} entry */
export function keyOf(entry) {
  return entry.by === "system" ? `${entry.ply}-${entry.kind}` : String(entry.ply);
}

/** @param {View} view */
export function moves(view) {
  return view.transcript.filter((entry) => entry.by !== "system");
}

/**
 * The view after a change: entries whose ply is held already replace the old ones, all other fields are taken over.
 *
 * @param {View} view
 * @param {Change} change
 * @returns {View}
 */
export function merge(view, change) {
  if (change.match !== view.match || change.ply < view.ply) return view;
  const { transcript: fresh = [], ...fields } = change;
  const entries = new Map(view.transcript.map((entry) => [keyOf(entry), entry]));
  for (const entry of fresh) entries.set(keyOf(entry), entry);
  return { ...view, ...fields, transcript: [...entries.values()].sort((a, b) => a.ply - b.ply) };
}

/**
 * Whether every accepted move is there. If not, something was missed and the whole view is to be asked for.
 *
 * @param {View} view
 */
export function isWhole(view) {
  return moves(view).length === view.ply;
}

/**
 * Whether this seat can make a move of a kind now.
 *
 * @param {View} view
 * @param {string} kind
 */
export function may(view, kind) {
  return view.status === "playing" && view.may.some((move) => move.kind === kind);
}

/**
 * The moments that may have words of their own, the closest first; templates/parts.html says what they mean.
 *
 * @param {View} view
 * @param {string | null} turn - what the game calls this turn
 * @returns {string[]}
 */
export function moments(view, turn) {
  if (view.status === "waiting") return ["waiting"];
  if (view.status === "playing") return [String(turn), String(view.to_move)];
  const { reason, winner } = view.outcome ?? {};
  const closest = `over ${reason} ${winner ?? "nobody"}`;
  return [`${closest} ${moves(view).at(-1)?.kind}`, closest, `over ${reason}`, `over ${winner}`, "over"];
}
