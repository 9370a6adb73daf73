// Single keys of transcripts and codings: each presses the link or button that names it in `data-key`. They work only
// while the list or the reader has the focus, never in a field, and can be switched off (WCAG 2.1.4).

import { closest } from "../dom.js";

const STORED = "parlor.single-keys";
const OFF = "off";
const choice = document.querySelector("#single-keys");

if (choice instanceof HTMLInputElement) {
  choice.checked = localStorage.getItem(STORED) !== OFF;
  choice.addEventListener("change", () => localStorage.setItem(STORED, choice.checked ? "on" : OFF));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (!(choice instanceof HTMLInputElement && choice.checked)) return;
  if (!closest(event, ".hits, .reader") || closest(event, "input, select, textarea")) return;
  const pressed = document.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
  if (!(pressed instanceof HTMLElement)) return;
  event.preventDefault();
  pressed.click();
});
