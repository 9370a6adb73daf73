import assert from "node:assert/strict";
import { test } from "node:test";
import { Outbox } from "../../static/js/outbox.js";

/** An outbox whose posts are answered by hand, with what it has stored, posted and reported. */
function started(kept = null) {
  const seen = { stored: kept, posts: [], events: [] };
  const store = {
    read: () => seen.stored,
    write: (value) => {
      seen.stored = value;
    },
  };
  const post = (move) => new Promise((resolve, reject) => seen.posts.push({ move, resolve, reject }));
  const event = (name) => (move, error) => seen.events.push([name, move.text, ...(error ? [error.code] : [])]);
  const on = Object.fromEntries(["sending", "accepted", "refused", "unsent"].map((name) => [name, event(name)]));
  return { seen, outbox: new Outbox(store, post, on) };
}

test("an accepted move is reported, and no longer stored", async () => {
  const { seen, outbox } = started();
  const sent = outbox.send("message", "hello", "[message] hello", 3);
  assert.equal(seen.stored.text, "[message] hello");
  assert.equal(seen.posts[0].move.ply, 3);
  seen.posts[0].resolve({ ok: true });
  await sent;
  assert.deepEqual(seen.events, [["sending", "[message] hello"], ["accepted", "[message] hello"]]);
  assert.equal(seen.stored, null);
  assert.equal(outbox.move, null);
});

test("a move without an answer is sent again under the same id", async () => {
  const { seen, outbox } = started();
  const sent = outbox.send("message", "hello", "hello", 0);
  seen.posts[0].reject(new Error("no answer"));
  await sent;
  const again = outbox.retry();
  assert.equal(seen.posts[1].move.move_id, seen.posts[0].move.move_id);
  seen.posts[1].resolve({ ok: true });
  await again;
  assert.deepEqual(seen.events.map(([name]) => name), ["sending", "unsent", "sending", "accepted"]);
});

test("a server that is busy leaves the move to be sent again", async () => {
  const { seen, outbox } = started();
  const sent = outbox.send("message", "hello", "hello", 0);
  seen.posts[0].resolve({ ok: false, error: { code: "unavailable" } });
  await sent;
  assert.deepEqual(seen.events.at(-1), ["unsent", "hello"]);
  assert.equal(seen.stored.text, "hello");
});

test("a refused move is reported with the reason, and no longer stored", async () => {
  const { seen, outbox } = started();
  const sent = outbox.send("message", "hello", "hello", 0);
  seen.posts[0].resolve({ ok: false, error: { code: "stale" } });
  await sent;
  assert.deepEqual(seen.events.at(-1), ["refused", "hello", "stale"]);
  assert.equal(seen.stored, null);
});

test("a move on its way is not sent twice at once", () => {
  const { seen, outbox } = started();
  outbox.send("message", "hello", "hello", 0);
  outbox.retry();
  assert.equal(seen.posts.length, 1);
});

test("a move that showed up in the conversation is not reported again by its answer", async () => {
  const { seen, outbox } = started();
  const sent = outbox.send("message", "hello", "hello", 0);
  outbox.settle();
  seen.posts[0].resolve({ ok: true });
  await sent;
  assert.deepEqual(seen.events, [["sending", "hello"]]);
});

test("a refreshed page sends what was on its way", () => {
  const kept = { move_id: "a1", ply: 2, text: "hello", kind: "message", body: "hello", at: "2026-03-01T14:02:11Z" };
  const { seen, outbox } = started(kept);
  outbox.retry();
  assert.deepEqual(seen.posts[0].move, { move_id: "a1", ply: 2, text: "hello" });
});

test("every move has an id of its own", () => {
  const ids = new Set(Array.from({ length: 50 }, () => {
    const { seen, outbox } = started();
    outbox.send("message", "hello", "hello", 0);
    return seen.posts[0].move.move_id;
  }));
  assert.equal(ids.size, 50);
  assert.ok([...ids].every((id) => /^[0-9a-f]{32}$/.test(id)));
});
