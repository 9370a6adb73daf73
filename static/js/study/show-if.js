// Shows a question that depends on an answer of the same page once it applies. The server decides for itself again.

import { findAll } from "../dom.js";

/** @type {Record<string, (a: number, b: number) => boolean>} */
const COMPARE = {
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
};

/** @param {HTMLFormElement} form */
export function showWhatApplies(form) {
  const questions = findAll("[data-if]", form);
  if (!questions.length) return;
  const update = () => {
    for (const question of questions) {
      const { if: name, sign, value } = question.dataset;
      const source = document.getElementById(name ?? "");
      const answer = source?.hidden ? null : new FormData(form).get(name ?? "");
      question.hidden = !holds(answer === null ? null : String(answer), sign ?? "", value ?? "");
    }
  };
  form.addEventListener("input", update);
  form.addEventListener("change", update);
  update();
}

/**
 * Whether a rule holds for an answer; never for none.
 *
 * @param {string | null} answer
 * @param {string} sign
 * @param {string} value
 * @returns {boolean}
 */
export function holds(answer, sign, value) {
  if (answer === null || answer === "") return false;
  const [a, b] = [Number(answer.replace(",", ".")), Number(value)];
  const same = answer === value || (value !== "" && !Number.isNaN(a) && a === b);
  if (sign === "=") return same;
  if (sign === "!=") return !same;
  return COMPARE[sign]?.(a, b) ?? false;
}
