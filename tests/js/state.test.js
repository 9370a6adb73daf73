import assert from "node:assert/strict";
import { test } from "node:test";
import { isWhole, keyOf, may, merge, moments, moves } from "../../static/js/state.js";

const said = (ply, by = "you", text = "hello") => ({ ply, by, kind: "message", text });
const view = (fields = {}) => ({
  match: "m", status: "playing", ply: 1, to_move: "partner", transcript: [said(0)], facts: {}, secret: {}, may: [], clock: null, outcome: null, ...fields,
});

test("a change brings its entry and its fields", () => {
  const next = merge(view(), { match: "m", ply: 2, to_move: "you", transcript: [said(1, "partner", "hi")] });
  assert.deepEqual(next.transcript.map((entry) => entry.text), ["hello", "hi"]);
  assert.equal(next.to_move, "you");
  assert.equal(next.ply, 2);
});

test("an entry that is held already is replaced where it stands", () => {
  const hidden = view({ ply: 2, transcript: [{ ...said(0, "partner"), text: null }, said(1)] });
  const next = merge(hidden, { match: "m", ply: 2, transcript: [said(0, "partner", "[propose] (1 books, 0 hats, 0 balls)")] });
  assert.deepEqual(next.transcript.map((entry) => entry.text), ["[propose] (1 books, 0 hats, 0 balls)", "hello"]);
});

test("a change that is late or of another match changes nothing", () => {
  const now = view({ ply: 3 });
  assert.equal(merge(now, { match: "m", ply: 2, to_move: "you" }), now);
  assert.equal(merge(now, { match: "other", ply: 9, to_move: "you" }), now);
});

test("a merge leaves the view before it as it was", () => {
  const before = view();
  merge(before, { match: "m", ply: 2, transcript: [said(1)] });
  assert.deepEqual(before, view());
});

test("a view that lacks a move is not whole, whatever the system says in it", () => {
  assert.equal(isWhole(view()), true);
  assert.equal(isWhole(view({ ply: 2 })), false);
  assert.equal(isWhole(view({ ply: 2, transcript: [said(0), { ply: 1, by: "system", kind: "started", text: "" }] })), false);
});

test("entries of the system stand beside moves of the same ply", () => {
  assert.notEqual(keyOf(said(1)), keyOf({ ply: 1, by: "system", kind: "started", text: "" }));
  assert.deepEqual(moves(view({ transcript: [{ ply: 0, by: "system", kind: "started", text: "" }, said(0)] })), [said(0)]);
});

test("a kind of move may be made only while the match is played and the view names it", () => {
  const mine = { to_move: "you", may: [{ kind: "proposal" }] };
  assert.equal(may(view(mine), "proposal"), true);
  assert.equal(may(view(mine), "message"), false);
  assert.equal(may(view({ ...mine, status: "over" }), "proposal"), false);
});

test("the words of a moment are looked for from the closest to the widest", () => {
  assert.deepEqual(moments(view({ status: "waiting" }), null), ["waiting"]);
  assert.deepEqual(moments(view({ to_move: "you" }), "you first"), ["you first", "you"]);
  const over = view({ status: "over", outcome: { reason: "tied game", winner: null } });
  assert.deepEqual(moments(over, null), ["over tied game nobody message", "over tied game nobody", "over tied game", "over null", "over"]);
});
