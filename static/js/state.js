// A seat's view of its match, and how a change makes the next one. Pure; docs/protocol.md has the shapes.

export function keyOf(entry) {
  return entry.by === "system" ? `${entry.ply}-${entry.kind}` : String(entry.ply);
}

export function moves(view) {
  return view.transcript.filter((entry) => entry.by !== "system");
}

// The view after a change: entries whose ply is held already replace the old ones, all other fields are taken over.
export function merge(view, change) {
  if (change.match !== view.match || change.ply < view.ply) return view;
  const { transcript: fresh = [], ...fields } = change;
  const entries = new Map(view.transcript.map((entry) => [keyOf(entry), entry]));
  for (const entry of fresh) entries.set(keyOf(entry), entry);
  return { ...view, ...fields, transcript: [...entries.values()].sort((a, b) => a.ply - b.ply) };
}

// Whether every accepted move is there. If not, something was missed and the whole view is to be asked for.
export function isWhole(view) {
  return moves(view).length === view.ply;
}

export function may(view, kind) {
  return view.status === "playing" && view.may.some((move) => move.kind === kind);
}

// The moments that may have words of their own, the closest first; templates/parts.html says what they mean.
export function moments(view, turn) {
  if (view.status === "waiting") return ["waiting"];
  if (view.status === "playing") return [turn, view.to_move];
  const { reason, winner } = view.outcome ?? {};
  const closest = `over ${reason} ${winner ?? "nobody"}`;
  return [`${closest} ${moves(view).at(-1)?.kind}`, closest, `over ${reason}`, `over ${winner}`, "over"];
}
