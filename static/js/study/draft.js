// Keeps what is typed into a form over a reload, in this tab, until the form's page is left behind.

import { stored } from "../store.js";

const HIDDEN = ["hidden", "submit", "button"];

/**
 * Fills a form with what was typed before, and keeps what is typed from now on.
 *
 * @param {HTMLFormElement} form
 */
export function keepDraft(form) {
  const draft = stored("study", form.dataset.draft ?? "");
  fill(form, draft.read() ?? {});
  form.addEventListener("input", () => draft.write(typed(form)));
  form.addEventListener("change", () => draft.write(typed(form)));
}

/**
 * @param {HTMLFormElement} form
 * @returns {Record<string, string[]>}
 */
export function typed(form) {
  /** @type {Record<string, string[]>} */
  const found = {};
  for (const field of fields(form)) {
    if ("checked" in field && isTicked(field) && !field.checked) continue;
    found[field.name] = [...(found[field.name] ?? []), field.value];
  }
  return found;
}

/**
 * What was sent and refused is in the draft, too, with what was typed since then.
 *
 * @param {HTMLFormElement} form
 * @param {Record<string, string[]>} values
 */
function fill(form, values) {
  for (const field of fields(form)) {
    const known = values[field.name];
    if (!known) continue;
    if (isTicked(field)) /** @type {HTMLInputElement} */ (field).checked = known.includes(field.value);
    else field.value = known[0] ?? "";
    field.dispatchEvent(new Event("filled"));
  }
}

/**
 * @param {HTMLFormElement} form
 * @returns {(HTMLInputElement | HTMLTextAreaElement)[]}
 */
function fields(form) {
  return /** @type {(HTMLInputElement | HTMLTextAreaElement)[]} */ (
    [...form.elements].filter(
      (field) =>
        (field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement) &&
        field.name &&
        !HIDDEN.includes(field.type),
    )
  );
}

/** @param {HTMLInputElement | HTMLTextAreaElement} field */
function isTicked(field) {
  return field.type === "radio" || field.type === "checkbox";
}
