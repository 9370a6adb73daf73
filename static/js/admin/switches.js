// Switches of models: pressed without leaving the page. Without this script each is a form that loads the page again.

import { closest, find, isPage, parsed } from "../dom.js";
import { put } from "./put.js";

const list = find("#listed, #uses");
const error = find("#switch-error");

list.addEventListener("submit", async (event) => {
  const form = closest(event, "[data-switch]", HTMLFormElement);
  if (!form) return;
  event.preventDefault();
  const answer = await fetch(form.getAttribute("action") ?? "", { method: "POST", body: new FormData(form, event.submitter) }).catch(() => null);
  const page = answer && isPage(answer) ? await parsed(answer) : null;
  const now = page?.getElementById(list.id);
  if (answer?.ok && !now) return location.reload(); // nobody is signed in any more
  if (now) put(list, now);
  error.textContent = answer?.ok ? "" : (page?.querySelector("[role=alert]:not(:empty)")?.textContent ?? error.dataset.lost ?? "");
});
