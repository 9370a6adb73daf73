import assert from "node:assert/strict";
import { test } from "node:test";
import { MoveTiming } from "../../static/js/timing.js";

/** A measurement whose clock is set by hand, and a box that is written in. */
function started() {
  const at = { now: 1000 };
  const timing = new MoveTiming(() => at.now);
  let length = 0;
  const change = (type, by, selected = 0) => {
    timing.before(type, length, selected);
    length += by;
    timing.after(length);
  };
  const write = (text, each = 100) => {
    for (const letter of text) {
      at.now += each;
      timing.key(letter);
      change("insertText", 1);
    }
  };
  return { at, timing, change, write };
}

test("a move is timed from when it could be seen what it answers", () => {
  const { at, timing, write } = started();
  timing.show(1);
  at.now += 800;
  write("Hello");
  at.now += 300;
  assert.deepEqual(timing.take(), { sent: 1600, typing: 400, hidden: 0, keys: 5, typed: 5, first_input: 900 });
});

test("a pause is no typing, and the next move begins at nothing", () => {
  const { at, timing, write } = started();
  timing.show(1);
  write("ab");
  at.now += 5000;
  write("cd");
  assert.equal(timing.take().typing, 200);
  timing.show(3);
  at.now += 50;
  assert.deepEqual(timing.take(), { sent: 50, typing: 0, hidden: 0 });
});

test("the same turn shown again goes on", () => {
  const { at, timing } = started();
  timing.show(1);
  at.now += 100;
  timing.show(1);
  at.now += 100;
  assert.equal(timing.take().sent, 200);
});

test("what is pasted, dropped, dictated, replaced and deleted is counted apart", () => {
  const { timing, change, write } = started();
  timing.show(1);
  write("Helo");
  change("insertReplacementText", 1, 4);
  change("insertFromPaste", 20);
  change("insertFromDrop", 6);
  change("insertDictationResult", 9);
  change("deleteContentBackward", -2);
  const { typed, replaced, pastes, pasted, dropped, dictated, deleted } = timing.take();
  assert.deepEqual([typed, replaced, pastes, pasted, dropped, dictated, deleted], [4, 5, 1, 20, 6, 9, 2]);
});

test("a composition counts once what it writes again and again", () => {
  const { timing, change } = started();
  timing.show(1);
  change("insertCompositionText", 1);
  change("insertCompositionText", 1, 1);
  change("insertCompositionText", 1, 2);
  assert.equal(timing.take().typed, 3);
});

test("time in another tab is told apart", () => {
  const { at, timing } = started();
  timing.see(true);
  at.now += 400;
  timing.show(1);
  at.now += 100;
  timing.see(false);
  at.now += 100;
  timing.see(true);
  timing.see(true);
  at.now += 700;
  const { sent, hidden, hides } = timing.take();
  assert.deepEqual([sent, hidden, hides], [900, 800, 2]);
});

test("what was written before the partner's move, or before the page was loaded, is said", () => {
  const { timing, write } = started();
  timing.restore(7);
  write("Well,");
  timing.show(1);
  write(" no");
  const { ahead, restored, typed, first_input } = timing.take();
  assert.deepEqual([ahead, restored, typed, first_input], [5, 7, 8, 100]);
});

test("keys that write nothing are not counted", () => {
  const { timing } = started();
  for (const key of ["Shift", "ArrowLeft", "a", "Backspace", "Unidentified"]) timing.key(key);
  assert.equal(timing.take().keys, 2);
});
