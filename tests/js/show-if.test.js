// Whether a question of a survey applies, as the server decides it, too.

import assert from "node:assert/strict";
import { test } from "node:test";

import { holds } from "../../static/js/study/show-if.js";

test("a word is compared as a word and a number as a number", () => {
  assert.equal(holds("yes", "=", "yes"), true);
  assert.equal(holds("no", "=", "yes"), false);
  assert.equal(holds("no", "!=", "yes"), true);
  assert.equal(holds("10", ">", "9"), true);
  assert.equal(holds("2,5", "<=", "2.5"), true);
  assert.equal(holds("5.0", "=", "5"), true);
});

test("no answer and a word where a number is needed never hold", () => {
  assert.equal(holds(null, "!=", "yes"), false);
  assert.equal(holds("", "!=", "yes"), false);
  assert.equal(holds("many", ">", "1"), false);
});
