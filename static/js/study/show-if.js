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
  const [a, b] = [typedNumber(answer), Number(value)];
  const same = answer === value || (value !== "" && !Number.isNaN(a) && a === b);
  if (sign === "=") return same;
  if (sign === "!=") return !same;
  return COMPARE[sign]?.(a, b) ?? false;
}

/**
 * A number as it is typed, in digits of any script; NaN for what the server asks for again, as 1,200, which may be
 * thousands or decimals.
 *
 * @param {string} text
 * @returns {number}
 */
export function typedNumber(text) {
  const plain = text
    .normalize("NFKC")
    .replace(/\p{Nd}/gu, (digit) => String(digitOf(digit)))
    .replace(/[\u2010-\u2013\u2212]/g, "-")
    .replace(/[\u066b\u3002]/g, ".")
    .replace(/[\p{Cf}\s]/gu, "");
  if (/^[+-]?[1-9]\d*[.,]\d{3}$/.test(plain) || !/^[+-]?\d*[.,]?\d*$/.test(plain) || !/\d/.test(plain)) return NaN;
  return Number(plain.replace(",", "."));
}

/**
 * Digits of a script stand in a row from 0 to 9, so the one that is worth 0 is the first that is no digit's neighbour.
 *
 * @param {string} digit
 */
function digitOf(digit) {
  const code = digit.codePointAt(0) ?? 0;
  let value = 0;
  while (value < 9 && /\p{Nd}/u.test(String.fromCodePoint(code - value - 1))) value += 1;
  return value;
}
