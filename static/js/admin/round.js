// A round as it is played: its figures come over a line, its latest transcripts are asked for when matches have ended.

import { t } from "../words.js";
import { page, seldom } from "./ask.js";
import { put } from "./put.js";
import { follow, show, teller } from "./watch.js";

const LATEST_EVERY = 2000;
const FIGURES_FIRST = 2000;
const FIGURES_EVERY = 10_000;
const GOING = ["waiting", "running", "cancelling"];
const live = document.querySelector("#live[data-round]");
const tell = teller((percent) => t("%(percent)s percent of the matches are over.", { percent }));
let status = live?.dataset.status;

function change(data) {
  show(live, data);
  tell(data);
  if (data.finished !== undefined) latest();
  if (data.status !== undefined) {
    if (status !== data.status) whole();
    status = data.status;
  }
}

const latest = seldom(LATEST_EVERY, async () => {
  const now = await page(live.dataset.latest);
  if (now) put(document.querySelector("#latest"), now);
});

// The status has changed, and with it what can be done and what is known: the whole page is shown anew.
async function whole() {
  const now = await page(location.pathname);
  if (!now) return;
  for (const id of ["head", "live", "tiles", "latest", "played", "analysis"]) {
    const part = now.querySelector(`#${id}`);
    if (part) put(document.getElementById(id), part);
  }
  document.querySelector("#said").textContent = document.querySelector("#head .tag")?.textContent ?? "";
}

// The figures with their intervals are reckoned anew while matches end: soon at first, then seldom, and the more so the
// longer it takes.
async function figures(pause) {
  const began = performance.now();
  const now = document.hidden ? null : await page(location.pathname);
  if (!GOING.includes(status)) return;
  for (const id of ["tiles", "analysis"]) if (now) put(document.getElementById(id), now.querySelector(`#${id}`));
  const next = Math.max(Math.min(FIGURES_EVERY, 1.5 * pause), 10 * (performance.now() - began));
  setTimeout(figures, next, next);
}

if (live) {
  if (GOING.includes(status)) setTimeout(figures, FIGURES_FIRST, FIGURES_FIRST);
  follow({ rounds: [Number(live.dataset.round)] }, change);
}
