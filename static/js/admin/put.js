// Puts what the server has rendered anew into a page, where it has changed.

import { drawAll } from "../charts.js";

// What has the focus keeps it, and what somebody is about to copy is left alone.
export function put(place, now) {
  const selection = document.getSelection();
  if (place.innerHTML === now.innerHTML || (!selection.isCollapsed && selection.containsNode(place, true))) return;
  const focused = place.contains(document.activeElement) ? nameOf(document.activeElement) : null;
  const across = place.querySelector(".scroll")?.scrollLeft ?? 0;
  const open = [...place.querySelectorAll("details")].map((each) => each.open);
  place.replaceChildren(...now.childNodes);
  place.querySelectorAll("details").forEach((each, index) => (each.open = open[index] ?? false));
  place.querySelector(".scroll")?.scrollTo(across, 0);
  drawAll(place);
  if (focused) [...place.querySelectorAll("a, button, [tabindex]")].find((each) => nameOf(each) === focused)?.focus({ preventScroll: true });
}

// The same for a place with a chart in it: its words and numbers are put, and the drawing stays until the next one is there.
export function putChart(place, now) {
  if (!place.querySelector("figure")) return put(place, now);
  for (const part of ["[data-sentence]", "[data-numbers]", "[data-csv]"]) put(place.querySelector(part), now.querySelector(part));
  drawAll(place);
}

function nameOf(element) {
  return element.getAttribute("href") ?? element.getAttribute("aria-label");
}
