import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { stored } from "../../static/js/store.js";

beforeEach(() => {
  const items = new Map();
  globalThis.sessionStorage = {
    getItem: (key) => items.get(key) ?? null,
    setItem: (key, value) => items.set(key, value),
    removeItem: (key) => items.delete(key),
  };
});

test("what is written is read again, by match and name", () => {
  stored("m", "draft").write("hello");
  assert.equal(stored("m", "draft").read(), "hello");
  assert.equal(stored("m", "move").read(), null);
  assert.equal(stored("other", "draft").read(), null);
});

test("nothing is left of what was cleared", () => {
  const draft = stored("m", "draft");
  draft.write("hello");
  draft.write("");
  assert.equal(draft.read(), null);
});

test("a browser that forbids storage only forgets", () => {
  const forbidden = () => {
    throw new Error("forbidden");
  };
  globalThis.sessionStorage = { getItem: forbidden, setItem: forbidden, removeItem: forbidden };
  const draft = stored("m", "draft");
  draft.write("hello");
  assert.equal(draft.read(), null);
});
