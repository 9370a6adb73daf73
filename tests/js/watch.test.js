// What a page shows of a job whose figures came over the line.

import assert from "node:assert/strict";
import { test } from "node:test";

import "./page.js";
import { show } from "../../static/js/admin/watch.js";

/** A bar as browsers have it: its value is a finite number. */
class HTMLProgressElement {
  max = 1;
  #value = 0;

  get value() {
    return this.#value;
  }

  set value(value) {
    if (!Number.isFinite(Number(value))) throw new TypeError("The provided double value is non-finite.");
    this.#value = Number(value);
  }
}
Object.assign(globalThis, { HTMLElement: Object, HTMLProgressElement });

const bar = new HTMLProgressElement();
const place = { querySelectorAll: (/** @type {string} */ which) => (which === "[data-figure=bar]" ? [bar] : []) };

test("the bar goes by steps where these are numbers, and else by what is done", () => {
  show(place, { step: 80, steps: 240 });
  assert.deepEqual([bar.value, bar.max], [80, 240]);
  show(place, { step: "8 of 30 chats", done: 1, of: 2 });
  assert.deepEqual([bar.value, bar.max], [1, 2]);
  show(place, { step: "9 of 30 chats" });
  assert.deepEqual([bar.value, bar.max], [1, 2]);
  show(place, { finished: 7 });
  assert.equal(bar.value, 7);
});
