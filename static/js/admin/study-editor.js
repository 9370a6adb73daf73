// The editor of a study: numbers its lines, has it checked while somebody types, takes files that are dropped, and asks
// before what was typed is lost.

import { closest, find, findAll, isPage, parsed } from "../dom.js";

const WAIT = 700; // milliseconds after the last key
const TEXTS = /\.(ya?ml|md|txt|csv|jsonl?)$/i;
const form = find("#editor", document, HTMLFormElement);
const text = find("#yaml", form, HTMLTextAreaElement);
const lines = find("#lines", form);
const checked = find("#checked", form);
/** @type {number | undefined} */
let timer;
/** @type {AbortController | undefined} */
let asking;
const saved = form.hasAttribute("data-typed") ? null : contentsAsSent();
let mayLeave = false; // once: a download asks as well, and stays

/** What would be saved, to be compared. */
function contents() {
  return JSON.stringify(new FormData(form).getAll("text"));
}

/** The same as the server sent it, which somebody may have changed before this script was there. */
function contentsAsSent() {
  return JSON.stringify(findAll("textarea[name=text]", form, HTMLTextAreaElement).map((each) => each.defaultValue));
}

function number() {
  const count = text.value.split("\n").length;
  text.rows = count;
  while (lines.children.length > count) lines.lastElementChild?.remove();
  while (lines.children.length < count) {
    const line = document.createElement("li");
    line.append(Object.assign(document.createElement("span"), { textContent: String(lines.children.length + 1) }));
    lines.append(line);
  }
}

function mark() {
  for (const line of lines.children) line.classList.remove("at-bad", "at-warn");
  for (const fault of findAll("[data-line]", checked)) {
    lines.children[Number(fault.dataset.line) - 1]?.classList.add(fault.classList.contains("bad") ? "at-bad" : "at-warn");
  }
  text.setAttribute("aria-invalid", String(checked.querySelector(".bad") !== null));
}

async function check() {
  asking?.abort();
  const mine = new AbortController();
  asking = mine;
  const sent = new FormData(form);
  sent.set("action", "check");
  const answer = await fetch(form.getAttribute("action") ?? "", { method: "POST", body: sent, signal: mine.signal }).catch(() => null);
  if (mine.signal.aborted) return;
  if (!answer || answer.redirected || !isPage(answer)) return say(form.dataset.unread ?? "");
  const page = await parsed(answer);
  if (mine.signal.aborted) return;
  if (!page.querySelector("#checked")) return say(form.dataset.unread ?? "");
  for (const place of ["#head", "#verdict", "#checked", "#costs"]) replace(place, page);
  mark();
}

/**
 * Puts a part of the checked page in the place of this one's, unless it is the same or has the focus.
 *
 * @param {string} place
 * @param {Document} page
 */
function replace(place, page) {
  const own = find(place, form);
  const now = find(place, page);
  if (own.innerHTML !== now.innerHTML && !own.contains(document.activeElement)) own.replaceChildren(...now.childNodes);
}

/** @param {string} words */
function say(words) {
  checked.replaceChildren(Object.assign(document.createElement("p"), { className: "error", textContent: words }));
}

function later() {
  number();
  clearTimeout(timer);
  timer = setTimeout(check, WAIT);
}

/** @param {number} line */
function goTo(line) {
  const before = text.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  const end = text.value.indexOf("\n", before);
  text.focus({ preventScroll: true });
  text.setSelectionRange(before, end < 0 ? text.value.length : end);
  lines.children[line - 1]?.scrollIntoView({ block: "center" });
}

/**
 * A dropped file takes the place of the one of its name; a study's file, that of the study.
 *
 * @param {File} file
 */
async function take(file) {
  if (!TEXTS.test(file.name)) return say(form.dataset.wrongFile ?? "");
  const content = (await file.text()).replaceAll("\r\n", "\n");
  if (/\.ya?ml$/i.test(file.name)) text.value = content;
  else field(file.name).value = content;
  later();
}

/**
 * The field of a file, a new one if the study has none of that name.
 *
 * @param {string} name
 */
function field(name) {
  const others = find("#others", form);
  const known = findAll("textarea", others, HTMLTextAreaElement).find((each) => each.getAttribute("aria-label") === name);
  if (known) return known;
  const copy = /** @type {DocumentFragment} */ (find("#other", form, HTMLTemplateElement).content.cloneNode(true));
  find("summary", copy).textContent = name;
  find("input", copy, HTMLInputElement).value = name;
  const added = find("textarea", copy, HTMLTextAreaElement);
  added.setAttribute("aria-label", name);
  others.append(copy);
  return added;
}

form.addEventListener("input", later);
form.addEventListener("click", (event) => {
  const line = closest(event, ".problems a")?.closest("li")?.dataset.line;
  if (line === undefined) return;
  event.preventDefault();
  goTo(Number(line));
});
form.addEventListener("submit", (event) => {
  const action = event.submitter?.getAttribute("value");
  if (action === "check") {
    event.preventDefault();
    clearTimeout(timer);
    check();
  }
  mayLeave = action !== "check";
});
form.addEventListener("dragover", (event) => {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  find(".editor", form).classList.add("dropping");
});
for (const name of ["dragleave", "drop"]) form.addEventListener(name, () => find(".editor", form).classList.remove("dropping"));
form.addEventListener("drop", async (event) => {
  const files = [...(event.dataTransfer?.files ?? [])];
  if (!files.length) return;
  event.preventDefault();
  for (const file of files) await take(file);
});
window.addEventListener("beforeunload", (event) => {
  if (!mayLeave && contents() !== saved) event.preventDefault();
  mayLeave = false;
});
number();
mark();
if (saved !== null && contents() !== saved) later();
