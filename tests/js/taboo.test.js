import assert from "node:assert/strict";
import { test } from "node:test";
import "./page.js";
import { asGuess, seemsToSay } from "../../static/js/games/taboo.js";

test("the word is found in its forms, whatever the case and the accents", () => {
  for (const [word, text, found] of [
    ["candle", "Two CANDLES, please", "candles"],
    ["bake", "she was baking", "baking"],
    ["berry", "many berries", "berries"],
    ["stop", "it stopped", "stopped"],
    ["cafe", "a Café", "cafe"],
    ["candle", "c-a-n-d-l-e", "c-a-n-d-l-e"],
    ["candle", "can\u200bdle", "candle"],
  ]) assert.equal(seemsToSay(word, text), found, text);
});

test("a longer word that only has the word inside it is not the word", () => {
  assert.equal(seemsToSay("can", "candle"), null);
  assert.equal(seemsToSay("art", "the start"), null);
});

test("a guess is read without the quotes and the full stop around it", () => {
  assert.equal(asGuess(" “candle”. "), "candle");
  assert.equal(asGuess("mother-in-law!"), "mother-in-law");
});
