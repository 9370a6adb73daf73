// Times come as UTC from the server and are shown in the reader's own zone.

import { findAll } from "./dom.js";
import { language } from "./words.js";

const clock = new Intl.DateTimeFormat(language(), { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

/**
 * Hours and minutes of a moment in the reader's zone; empty if it is no moment.
 *
 * @param {string} iso
 */
export function localTime(iso) {
  const at = new Date(iso);
  return Number.isNaN(at.getTime()) ? "" : clock.format(at);
}

/** @param {ParentNode} root */
export function showTimes(root) {
  for (const time of findAll("time[datetime]", root, HTMLTimeElement)) time.textContent = localTime(time.dateTime);
}
