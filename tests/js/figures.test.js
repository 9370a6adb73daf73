import assert from "node:assert/strict";
import { test } from "node:test";
import "./page.js";
import { worded } from "../../static/js/admin/figures.js";

test("what is not known is shown as nothing", () => {
  assert.equal(worded("loss", null), "");
});

test("the time that is left is shown as a clock does", () => {
  assert.equal(worded("left", 65), "1:05");
  assert.equal(worded("left", 7209), "2:00:09");
});

test("small costs have four digits of a dollar, others two", () => {
  assert.equal(worded("cost", 0), "$0.00");
  assert.equal(worded("cost", 0.01234), "$0.0123");
  assert.equal(worded("cost", 1234.5), "$1,234.50");
});

test("figures of a training are exact, counts are grouped, words stay", () => {
  assert.equal(worded("loss", 0.0001234567), "0.0001235");
  assert.equal(worded("loss", -0.25), "−0.25");
  assert.equal(worded("epoch", 0.9231), "0.92");
  assert.equal(worded("tokens_per_second", 12350), "12,350");
  assert.equal(worded("finished", 12345), "12,345");
  assert.equal(worded("status", "running"), "running");
});
