import "./page.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { typingLine } from "../../static/js/typing.js";

test("a partner who cannot begin yet is told of in the page's own words, until something else is so", () => {
  const line = {
    dataset: { notReady: "Your partner is not ready yet." },
    textContent: "",
    replaceChildren() {
      this.textContent = "";
    },
  };
  const show = typingLine(/** @type {any} */ (line));
  show(true, 1, false);
  assert.equal(line.textContent, "Your partner is not ready yet.");
  show(false);
  assert.equal(line.textContent, "");
});
