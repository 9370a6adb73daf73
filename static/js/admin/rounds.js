// The list of rounds: bars of those that are played move by themselves.

import { page } from "./ask.js";
import { show, watch } from "./watch.js";

const rows = new Map([...document.querySelectorAll("tr[data-round]")].map((row) => [Number(row.dataset.round), row]));

function change(data) {
  const row = rows.get(data.round);
  if (!row) return;
  show(row, data);
  if ("status" in data && row.dataset.status !== data.status) renew(data.round, row);
  row.dataset.status = data.status ?? row.dataset.status;
}

// A round that has come to an end is shown as the server shows it, with its score.
async function renew(round, row) {
  const now = (await page())?.querySelector(`a[href$="/rounds/${round}"]`)?.closest("tr");
  if (!now) return;
  // The cell with the tick box stays as it is.
  [...row.cells].forEach((cell, index) => cell.querySelector("input") || cell.replaceChildren(...now.cells[index].childNodes));
}

if (rows.size) watch({ rounds: [...rows.keys()] }, { change, lost() {}, back() {}, refused() {} });
