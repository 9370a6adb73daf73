// Switches of models: pressed without leaving the page. Without this script each is a form that loads the page again.

import { put } from "./put.js";

const list = document.querySelector("#registry-list") ?? document.querySelector("#uses");
const error = document.querySelector("#switch-error");

list.addEventListener("submit", async (event) => {
  const form = event.target.closest("[data-switch]");
  if (!form) return;
  event.preventDefault();
  const answer = await fetch(form.getAttribute("action"), { method: "POST", body: new FormData(form, event.submitter) }).catch(() => null);
  const page = answer && /html/.test(answer.headers.get("Content-Type")) ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
  const now = page?.getElementById(list.id);
  if (answer?.ok && !now) return location.reload(); // nobody is signed in any more
  if (now) put(list, now);
  error.textContent = answer?.ok ? "" : (page?.querySelector("[role=alert]:not(:empty)")?.textContent ?? error.dataset.lost);
});
