import assert from "node:assert/strict";
import { test } from "node:test";
import "./page.js";
import { compose, shareOf, things, turn, words } from "../../static/js/games/offers.js";

const share = { book: 1, hat: 2, ball: 0 };
const plain = (text) => text.replaceAll("\u00a0", " ");
const proposal = (by, text) => ({ ply: 1, by, kind: "proposal", text });

test("a share is told as a list without what there is none of", () => {
  assert.equal(plain(things(share)), "1 book and 2 hats");
  assert.equal(plain(things({ book: 3, hat: 1, ball: 2 })), "3 books, 1 hat and 2 balls");
  assert.equal(plain(things({ book: 0, hat: 0, ball: 1 })), "1 ball");
  assert.equal(things({ book: 0, hat: 0, ball: 0 }), "nothing");
});

test("an offer is read as it was written", () => {
  assert.equal(compose("proposal", share), "[propose] (1 books, 2 hats, 0 balls)");
  assert.deepEqual(shareOf(compose("proposal", share)), share);
});

test("the game's own marks in a message are sent as words, and shown as they were written", () => {
  const text = compose("message", "I would [propose] this");
  assert.equal(/\[propose\]/.test(text), false);
  assert.deepEqual(words({ ply: 0, by: "you", kind: "message", text }, false), { text: "I would [propose] this", aside: false });
});

test("a hidden offer is told without its numbers, and differently once the match is over", () => {
  const [now, later] = [false, true].map((over) => words(proposal("partner", null), over));
  assert.match(now.text, /stays hidden/);
  assert.match(later.text, /ended before it was shown/);
  assert.ok(now.aside && later.aside);
});

test("an offer says whose it is", () => {
  const text = compose("proposal", share);
  assert.match(plain(words(proposal("you", text), true).text), /^You made your offer: 1 book and 2 hats/);
  assert.match(plain(words(proposal("partner", text), true).text), /^Your partner made an offer: 1 book and 2 hats/);
});

test("the turn has words of its own at the start and after an offer", () => {
  const view = (fields) => ({ to_move: "you", ply: 0, transcript: [], ...fields });
  assert.equal(turn(view()), "you first");
  assert.equal(turn(view({ ply: 1, to_move: "partner" })), "partner");
  assert.equal(turn(view({ ply: 2, transcript: [proposal("partner", null)] })), "you offer");
});
