// A job of any kind as it runs: its figures come over a line, and with each change of its status, or of what the page
// names in data-at, the page is requested again.

import { find } from "../dom.js";
import { page } from "./ask.js";
import { put } from "./put.js";
import { follow, show } from "./watch.js";

const live = find("#live");
const { jobs = "", number } = live.dataset;
const trigger = "at" in live.dataset ? "at" : "status";
let known = live.dataset[trigger];

/** @param {import("./watch.js").Change} data */
async function change(data) {
  show(live, data);
  if (data[trigger] === undefined || data[trigger] === known) return;
  known = data[trigger];
  const now = await page(location.pathname);
  if (!now) return;
  for (const id of ["head", "live", "facts"]) put(find(`#${id}`), find(`#${id}`, now));
  find("#said").textContent = find("#head .tag").textContent;
}

follow({ [jobs]: [Number(number)] }, change);
