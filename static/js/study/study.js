// The pages of a study. Everything works without this script, too; it makes answering easier, and keeps what was typed.

import { findAll } from "../dom.js";
import { warnOfSilence } from "./away.js";
import { keepDraft } from "./draft.js";
import { showWhatApplies } from "./show-if.js";
import { makeSlider } from "./slider.js";

for (const field of findAll("input[data-slider]", document, HTMLInputElement)) makeSlider(field);
for (const form of findAll("form[data-draft]", document, HTMLFormElement)) {
  keepDraft(form);
  showWhatApplies(form);
}
for (const form of findAll("form", document, HTMLFormElement)) sendOnline(form);
for (const button of findAll("button[data-copies]", document, HTMLButtonElement)) copies(button);
for (const form of findAll("form[data-entry]", document, HTMLFormElement)) {
  // A tablet that asks for pages of desktops is known by its touch screen.
  const touch = form.elements.namedItem("touch");
  if (touch instanceof HTMLInputElement && navigator.maxTouchPoints > 1 && !matchMedia("(any-pointer: fine)").matches) {
    touch.value = "yes";
  }
}
document.getElementById("refused")?.focus();
const away = document.getElementById("away");
const silentIn = document.getElementById("main")?.dataset.silentIn;
if (away && silentIn) warnOfSilence(away, Number(silentIn));
window.addEventListener("online", () => {
  const offline = document.getElementById("offline");
  if (offline) offline.hidden = true;
});

/**
 * Without a network a form is not sent: the browser would put its own page in the place of this one.
 *
 * @param {HTMLFormElement} form
 */
function sendOnline(form) {
  form.addEventListener("submit", (event) => {
    const offline = document.getElementById("offline");
    if (offline) offline.hidden = navigator.onLine;
    if (navigator.onLine) return;
    event.preventDefault();
    if (offline) form.append(offline);
  });
}

/**
 * Copies the text of an element, and says so.
 *
 * @param {HTMLButtonElement} button
 */
function copies(button) {
  const text = document.getElementById(button.dataset.copies ?? "")?.textContent ?? "";
  const status = button.parentElement?.parentElement?.querySelector("[data-copied]");
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      if (status instanceof HTMLElement) {
        status.textContent = status.dataset.copied ?? "";
        status.classList.remove("visually-hidden");
      }
    } catch {
      // A browser that forbids it leaves the text to be selected.
      getSelection()?.selectAllChildren(/** @type {Element} */ (document.getElementById(button.dataset.copies ?? "")));
    }
  });
}
