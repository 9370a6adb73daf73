// Asks for this page again while a worker is at something, and shows the part in which the answer appears.

import { find } from "../dom.js";
import { page } from "./ask.js";

const SECONDS = 1.5;
const LONGEST = 120;

/** @param {number} until - by the page's own clock */
async function look(until) {
  if (performance.now() > until) return;
  const now = await page(location.pathname);
  if (now && !now.querySelector("#waiting[data-waits]")) return show(now);
  setTimeout(look, SECONDS * 1000, until);
}

/** @param {HTMLElement} fresh */
function show(fresh) {
  for (const selector of ["#waiting", ".panel-head:has(#test) .tag", "#uses"]) {
    const old = document.querySelector(selector);
    const now = fresh.querySelector(selector);
    if (!old || !now) continue;
    old.replaceChildren(...now.childNodes); // the live region stays, so that what is new in it is read
    old.className = now.className;
  }
  find("#waiting").removeAttribute("aria-busy");
}

setTimeout(look, SECONDS * 1000, performance.now() + LONGEST * 1000);
