// A training job as it runs: its figures come over a line, its curve and its log are asked for when they have grown.

import { find } from "../dom.js";
import { t } from "../words.js";
import { page } from "./ask.js";
import { put, putChart } from "./put.js";
import { seldom } from "./seldom.js";
import { follow, show, teller } from "./watch.js";

const EVERY = 2000; // between two looks at the curve and the log
const live = /** @type {HTMLElement | null} */ (document.querySelector("#live[data-number]"));
const tell = teller((percent) => t("%(percent)s percent of the steps are done.", { percent }));
let status = live?.dataset.status;

/** @param {import("./watch.js").Change} data */
function change(data) {
  show(find("main"), data);
  tell(data);
  if (data.status !== undefined && data.status !== status) {
    status = data.status;
    whole();
  } else if (data.step !== undefined || data.eval_step !== undefined) grown();
}

const grown = seldom(EVERY, async () => {
  const now = await page(location.pathname);
  if (now) putGrown(now);
});

// The status has changed, and with it what can be done and what is known: the whole page is shown again.
async function whole() {
  const now = await page(location.pathname);
  if (!now) return;
  for (const id of ["head", "live", "tiles", "facts"]) put(find(`#${id}`), find(`#${id}`, now));
  putGrown(now);
  find("#said").textContent = find("#head .tag").textContent;
}

/**
 * Whoever reads the newest line of the log goes on reading the newest line.
 *
 * @param {HTMLElement} now
 */
function putGrown(now) {
  for (const id of ["#curve", "#method-curves"]) {
    putChart(find(id), find(id, now));
    find(id).hidden = find(id, now).hidden;
  }
  const before = document.querySelector("#log pre");
  const atEnd = !before || before.scrollTop + before.clientHeight >= before.scrollHeight - 4;
  const place = before?.scrollTop ?? 0;
  put(find("#log"), find("#log", now));
  const log = document.querySelector("#log pre");
  if (log) log.scrollTop = atEnd ? log.scrollHeight : place;
}

const log = document.querySelector("#log pre");
if (log) log.scrollTop = log.scrollHeight;
if (live) follow({ trainings: [Number(live.dataset.number)] }, change);
