import assert from "node:assert/strict";
import { test } from "node:test";
import { clockTime, warning } from "../../static/js/clock.js";

test("a clock warns at half time and in the last 15 seconds", () => {
  assert.deepEqual([90, 46, 45, 16, 15, 1, 0].map((left) => warning(left, 90)), ["", "", "soon", "soon", "last", "last", "last"]);
});

test("a clock of half a minute or less warns once, at half time", () => {
  assert.deepEqual([30, 16, 15].map((left) => warning(left, 30)), ["", "", "last"]);
  assert.deepEqual([20, 15, 11, 10].map((left) => warning(left, 20)), ["", "", "", "last"]);
});

test("a clock warns first when as much of it is over as the study says", () => {
  assert.deepEqual([90, 31, 30, 16, 15].map((left) => warning(left, 90, 2 / 3)), ["", "", "soon", "soon", "last"]);
  assert.deepEqual([90, 13, 12, 11].map((left) => warning(left, 120, 0.9)), ["", "", "last", "last"]);
});

test("a time is shown in minutes and seconds", () => {
  assert.equal(clockTime(299), "4:59");
  assert.equal(clockTime(5), "0:05");
});
