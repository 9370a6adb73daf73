// A round as it is played: its figures come over a line, its latest transcripts are asked for when matches have ended.

import { find, findAll } from "../dom.js";
import { t } from "../words.js";
import { page } from "./ask.js";
import { put } from "./put.js";
import { seldom } from "./seldom.js";
import { follow, show, teller } from "./watch.js";

const LATEST_EVERY = 2000;
const FIGURES_FIRST = 2000;
const FIGURES_EVERY = 10_000;
const GOING = ["waiting", "running", "cancelling"];
const live = /** @type {HTMLElement | null} */ (document.querySelector("#live[data-round]"));
const tell = teller((percent) => t("%(percent)s percent of the matches are over.", { percent }));
let status = live?.dataset.status;

/** @param {import("./watch.js").Change} data */
function change(data) {
  if (live) show(live, data);
  tell(data);
  if (data.finished !== undefined) latest();
  if (data.status !== undefined) {
    if (status !== data.status) whole();
    status = data.status;
  }
}

const latest = seldom(LATEST_EVERY, async () => {
  if (!document.querySelector("#latest")) return;
  const now = await page(live?.dataset.latest);
  if (now) put(find("#latest"), now);
});

/**
 * Show the parts of the page that `which` selects as the server has them now. Every tab is a page with parts of its own.
 *
 * @param {string} which
 */
async function renew(which) {
  const now = await page(location.pathname + location.search);
  for (const part of findAll(which)) {
    const fresh = now?.querySelector(`#${part.id}`);
    if (fresh) put(part, fresh);
  }
  return now;
}

// The status has changed, and with it what can be done and what is known: the whole page is shown again.
async function whole() {
  if (!(await renew("[data-part]"))) return;
  find("#said").textContent = document.querySelector("#head .tag")?.textContent ?? "";
}

/**
 * The figures with their intervals are recomputed while matches end: soon at first, then seldom, and the more so the
 * longer it takes.
 *
 * @param {number} pause - milliseconds
 */
async function figures(pause) {
  const began = performance.now();
  if (!document.hidden) await renew("#tabs, [data-part=figures]");
  if (!GOING.includes(status ?? "")) return;
  const next = Math.max(Math.min(FIGURES_EVERY, 1.5 * pause), 10 * (performance.now() - began));
  setTimeout(figures, next, next);
}

if (live) {
  if (GOING.includes(status ?? "")) setTimeout(figures, FIGURES_FIRST, FIGURES_FIRST);
  follow({ rounds: [Number(live.dataset.round)] }, change);
}
