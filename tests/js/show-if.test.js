// Whether a question of a survey applies, as the server decides it, too.

import assert from "node:assert/strict";
import { test } from "node:test";

import { holds, typedNumber } from "../../static/js/study/show-if.js";

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

test("a number is read in digits of any script, and not where it may be thousands or decimals", () => {
  assert.equal(holds("1,200", ">", "1"), false);
  assert.equal(holds("1.200", "<", "2"), false);
  assert.equal(typedNumber("\u0661\u0662"), 12);
  assert.equal(typedNumber("\uff13\uff0e\uff15"), 3.5);
  assert.equal(typedNumber("\u22125"), -5);
  for (const text of ["1e3", "1_000", "5 km", "50%", "", "-"]) assert.equal(typedNumber(text), NaN, text);
});
