// Puts what the server has rendered again into a page, where it has changed.

import { drawAll } from "../charts.js";
import { find, findAll } from "../dom.js";

/**
 * What has the focus keeps it, and what somebody is about to copy is left alone.
 *
 * @param {Element} place
 * @param {Element} now
 */
export function put(place, now) {
  const selection = document.getSelection();
  if (place.innerHTML === now.innerHTML || (selection && !selection.isCollapsed && selection.containsNode(place, true))) return;
  const focused = document.activeElement && place.contains(document.activeElement) ? nameOf(document.activeElement) : null;
  const across = place.querySelector(".scroll")?.scrollLeft ?? 0;
  const ticked = findAll(".tick input:checked", place, HTMLInputElement).map((each) => each.value);
  const open = [...place.querySelectorAll("details")].map((each) => each.open);
  place.replaceChildren(...now.childNodes);
  for (const [index, each] of place.querySelectorAll("details").entries()) each.open = open[index] ?? false;
  for (const each of findAll(".tick input", place, HTMLInputElement)) each.checked = ticked.includes(each.value);
  place.querySelector(".scroll")?.scrollTo(across, 0);
  drawAll(place);
  if (focused) findAll("a, button, [tabindex]", place).find((each) => nameOf(each) === focused)?.focus({ preventScroll: true });
}

/**
 * The same for a place with a chart in it: its words and numbers are put, and the drawing stays until the next one is there.
 *
 * @param {Element} place
 * @param {Element} now
 */
export function putChart(place, now) {
  if (!place.querySelector("figure") || !now.querySelector("figure")) return put(place, now);
  for (const part of ["[data-sentence]", "[data-numbers]", "[data-csv]"]) put(find(part, place), find(part, now));
  drawAll(place);
}

/** @param {Element} element */
function nameOf(element) {
  return element.getAttribute("href") ?? element.getAttribute("aria-label");
}
