// Times come as UTC from the server and are shown in the reader's own zone.

import { language } from "./words.js";

const clock = new Intl.DateTimeFormat(language(), { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

export function localTime(iso) {
  const at = new Date(iso);
  return Number.isNaN(at.getTime()) ? "" : clock.format(at);
}

export function showTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) time.textContent = localTime(time.dateTime);
}
