// Keeps parts of a page fresh: the server renders the page again, and what has changed of it is put in.

import { find, findAll } from "../dom.js";
import { answer } from "./ask.js";
import { put } from "./put.js";

const SECONDS = 5;
const notice = find("#fresh-notice");
/** @type {number | undefined} */
let timer;

async function look() {
  clearTimeout(timer);
  if (document.hidden) return;
  const { body, signedOut } = await answer();
  if (signedOut) return say(notice.dataset.signedOut ?? ""); // nothing more comes without signing in again
  for (const part of findAll("[data-fresh]")) {
    const now = body?.querySelector(`#${part.id}`);
    if (now) put(part, now);
  }
  say(body ? "" : (notice.dataset.lost ?? ""));
  timer = setTimeout(look, SECONDS * 1000);
}

/** @param {string} words */
function say(words) {
  if (notice.textContent !== words) notice.textContent = words;
}

document.addEventListener("visibilitychange", look);
timer = setTimeout(look, SECONDS * 1000);
