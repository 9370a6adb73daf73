// The form that starts a job: keeps its estimate fresh.

import { find, isPage, parsed } from "../dom.js";
import "./unfold.js";

const WAIT = 600;
const form = find("#launch", document, HTMLFormElement);
const expected = find("#expected");
/** @type {number | undefined} */
let timer;
let latest = 0;
let touched = false; // before, what is still empty is nobody's mistake

async function reckon() {
  const mine = ++latest;
  const given = new FormData(form);
  given.set("action", "preview"); // an estimate that is not refused as an error while the form is incomplete
  const answer = await fetch(form.getAttribute("action") ?? "", { method: "POST", body: given }).catch(() => null);
  if (mine !== latest) return;
  expected.removeAttribute("aria-busy");
  if (!answer || answer.redirected || !isPage(answer)) return;
  const page = await parsed(answer);
  if (mine !== latest) return;
  const refused = page.querySelector("[role=alert]");
  const now = page.querySelector("#expected");
  if (refused) expected.replaceChildren(Object.assign(document.createElement("p"), { className: touched ? "error" : "hint", lang: "en", textContent: refused.textContent }));
  else if (answer.ok && now) expected.replaceChildren(...now.childNodes);
}

// What is shown is of the form as it was: it goes at once, and the answer takes its place.
function later() {
  touched = true;
  latest += 1;
  expected.setAttribute("aria-busy", "true");
  expected.replaceChildren(Object.assign(document.createElement("p"), { className: "hint", textContent: expected.dataset.wait }));
  clearTimeout(timer);
  timer = setTimeout(reckon, WAIT);
}

form.addEventListener("input", later);
form.addEventListener("submit", (event) => {
  if (event.submitter?.getAttribute("value") !== "estimate") return;
  event.preventDefault();
  later();
});
if (!document.querySelector("[role=alert]")) reckon();
