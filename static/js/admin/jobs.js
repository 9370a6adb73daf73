// The list of training jobs: bars of those that run move by themselves.

import { findAll } from "../dom.js";
import { page } from "./ask.js";
import { show, watch } from "./watch.js";

const rows = new Map(findAll("tr[data-job]", document, HTMLTableRowElement).map((row) => [Number(row.dataset.job), row]));

/** @param {import("./watch.js").Change} data */
function change(data) {
  const row = rows.get(data.training);
  if (!row) return;
  show(row, data);
  if (data.status !== undefined && row.dataset.status !== data.status) renew(data.training, row);
  row.dataset.status = data.status ?? row.dataset.status;
}

/**
 * A job whose status has changed is shown as the server shows it, with its model.
 *
 * @param {number} job
 * @param {HTMLTableRowElement} row
 */
async function renew(job, row) {
  const now = (await page())?.querySelector(`a[href$="/jobs/${job}"]`)?.closest("tr");
  if (now) row.replaceChildren(...now.childNodes);
}

if (rows.size) watch({ trainings: [...rows.keys()] }, { change, lost() {}, back() {}, refused() {} });
