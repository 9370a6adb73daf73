import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { seldom } from "../../static/js/admin/seldom.js";

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("what is asked for often is asked at once, and once more after the pause", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  let asked = 0;
  const ask = seldom(1000, async () => {
    asked += 1;
  });
  ask();
  ask();
  ask();
  await settled();
  assert.equal(asked, 1);
  mock.timers.tick(1000);
  await settled();
  assert.equal(asked, 2);
  mock.timers.tick(1000);
  await settled();
  assert.equal(asked, 2);
  mock.timers.reset();
});
