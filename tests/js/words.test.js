import assert from "node:assert/strict";
import { test } from "node:test";
import "./german.js";
import "./page.js";
import { language, t, tn } from "../../static/js/words.js";

test("a text is said in the language of the page", () => {
  assert.equal(language(), "de");
  assert.equal(t("Yes"), "Ja");
});

test("a text without a translation is said in English", () => {
  assert.equal(t("Not translated: %(count)s", { count: 3 }), "Not translated: 3");
  assert.equal(tn("%(num)s hat", "%(num)s hats", 1), "1 hat");
  assert.equal(tn("%(num)s hat", "%(num)s hats", 2), "2 hats");
});

test("a number takes the plural form of the language", () => {
  assert.equal(tn("%(num)s book", "%(num)s books", 1), "1 Buch");
  assert.equal(tn("%(num)s book", "%(num)s books", 0), "0 Bücher");
});

test("a name without a value stays as it is", () => {
  assert.equal(t("%(who)s and %(whom)s", { who: "You" }), "You and %(whom)s");
});
