// A training job as it runs: its figures come over a line, its curve and its log are asked for when they have grown.

import { t } from "../words.js";
import { page, seldom } from "./ask.js";
import { put, putChart } from "./put.js";
import { follow, show, teller } from "./watch.js";

const EVERY = 2000; // between two looks at the curve and the log
const live = document.querySelector("#live[data-job]");
const tell = teller((percent) => t("%(percent)s percent of the steps are done.", { percent }));
let status = live?.dataset.status;

function change(data) {
  show(document.querySelector("main"), data);
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

// The status has changed, and with it what can be done and what is known: the whole page is shown anew.
async function whole() {
  const now = await page(location.pathname);
  if (!now) return;
  for (const id of ["head", "live", "tiles", "recipe"]) put(document.getElementById(id), now.querySelector(`#${id}`));
  putGrown(now);
  document.querySelector("#said").textContent = document.querySelector("#head .tag").textContent;
}

// Whoever reads the newest line of the log goes on reading the newest line.
function putGrown(now) {
  putChart(document.querySelector("#curve"), now.querySelector("#curve"));
  const before = document.querySelector("#log pre");
  const atEnd = !before || before.scrollTop + before.clientHeight >= before.scrollHeight - 4;
  const place = before?.scrollTop ?? 0;
  put(document.querySelector("#log"), now.querySelector("#log"));
  const log = document.querySelector("#log pre");
  if (log) log.scrollTop = atEnd ? log.scrollHeight : place;
}

const log = document.querySelector("#log pre");
if (log) log.scrollTop = log.scrollHeight;
if (live) follow({ jobs: [Number(live.dataset.job)] }, change);
