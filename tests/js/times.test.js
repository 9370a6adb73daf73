import assert from "node:assert/strict";
import { test } from "node:test";
import "./new-york.js";
import "./page.js";
import { localTime } from "../../static/js/times.js";

test("a time of the server is shown in the reader's zone, by the clock of 24 hours", () => {
  assert.equal(localTime("2026-03-01T19:02:11.482Z"), "14:02");
  assert.equal(localTime("2026-03-01T05:00:00Z"), "00:00");
});

test("what is no time is shown as nothing", () => {
  assert.equal(localTime(""), "");
});
