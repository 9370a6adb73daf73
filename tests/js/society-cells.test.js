import assert from "node:assert/strict";
import { test } from "node:test";
import "./page.js";
import { cellOf, legend, neighbour, values } from "../../static/js/admin/society-cells.js";

const PART = { first: 0, span: 5, begun: 2, ratings: { alignment_after: [[30, 0], [55, 20]], alignment_before: [[20, 10], [-1, 25]], engagement_after: [[10, 10], [null, 10]], engagement_before: [[10, 10], [10, 10]] } };

test("a rating has its shade and one digit behind the point", () => {
  assert.deepEqual(cellOf(70, false), { look: "rate-7", text: "7", said: "7" });
  assert.deepEqual(cellOf(45, false), { look: "rate-5", text: "4.5", said: "4.5" });
  assert.deepEqual(cellOf(44, false), { look: "rate-4", text: "4.4", said: "4.4" });
});

test("what is no rating says why", () => {
  assert.deepEqual([null, 0, -1].map((each) => cellOf(each, false).said), ["not over", "not rated", "failed"]);
  assert.deepEqual([null, 0, -1].map((each) => cellOf(each, false).text), ["", "–", "×"]);
});

test("a difference has a sign, and one of a rating that is missing is missing", () => {
  assert.deepEqual(values("drift", PART, PART, 1, 2), [25, { missing: 0 }]);
  assert.deepEqual(values("revising", PART, PART, 1, 2), [{ missing: -1 }, -5]);
  assert.deepEqual(cellOf(25, true), { look: "rate-5", text: "+2.5", said: "+2.5" });
  assert.deepEqual(cellOf(-60, true), { look: "rate-1", text: "−6", said: "−6" });
  assert.deepEqual(cellOf(0, true), { look: "rate-4", text: "0", said: "0" });
  assert.equal(cellOf({ missing: -1 }, true).said, "failed");
  assert.equal(cellOf({ missing: 0 }, true).said, "not rated");
  assert.equal(cellOf({ missing: null }, true).said, "not over");
});

test("an iteration that is not there is empty", () => {
  assert.deepEqual(values("alignment_after", PART, PART, 4, 2), [null, null]);
  assert.deepEqual(values("alignment_after", undefined, undefined, 0, 2), [null, null]);
});

test("the legend has ratings or differences", () => {
  assert.deepEqual([1, 4, 7].map((step) => legend(step, false)), ["1", "4", "7"]);
  assert.deepEqual([1, 4, 7].map((step) => legend(step, true)), ["−6", "0", "+6"]);
});

test("arrow keys stay on the grid", () => {
  assert.equal(neighbour(4, "ArrowRight", 3), 5);
  assert.equal(neighbour(5, "ArrowRight", 3), 5);
  assert.equal(neighbour(4, "ArrowUp", 3), 1);
  assert.equal(neighbour(1, "ArrowUp", 3), 1);
  assert.equal(neighbour(4, "Home", 3), 3);
  assert.equal(neighbour(4, "End", 3), 5);
  assert.equal(neighbour(4, "Enter", 3), undefined);
});
