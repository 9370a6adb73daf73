import assert from "node:assert/strict";
import { test } from "node:test";
import { visible } from "../../static/js/visible.js";

test("what shows nothing or turns the text around is marked", () => {
  assert.equal(visible("le\u200bmon"), "le\ufffdmon");
  assert.equal(visible("\u202egnirts"), "\ufffdgnirts");
  assert.equal(visible("a\u200cb"), "a\ufffdb");
});

test("joiners stay where a script or an emoji needs them", () => {
  assert.equal(visible("می\u200cخواهم"), "می\u200cخواهم");
  assert.equal(visible("👩\u200d🚀"), "👩\u200d🚀");
  assert.equal(visible("❤\ufe0f ©\ufe0f 1\ufe0f\u20e3"), "❤\ufe0f ©\ufe0f 1\ufe0f\u20e3");
});

test("plain text stays as it is", () => {
  assert.equal(visible("Ich nehme zwei Hüte, ok?"), "Ich nehme zwei Hüte, ok?");
});
