// The words of this page in its reader's language. What is written in the code is English; the server puts what it is in
// another language into the page, from translations/ (docs/translating.md).

/** @type {Record<string, any>} a text's translation, or its forms by plural category */
const catalog = JSON.parse(document.querySelector("meta[name=words]")?.getAttribute("content") ?? "{}");
const plurals = new Intl.PluralRules(language());

export function language() {
  return document.documentElement.lang;
}

/**
 * The text with values for its %(name)s.
 *
 * @param {string} text
 * @param {Record<string, string | number | undefined>} [values]
 * @returns {string}
 */
export function t(text, values = {}) {
  return filled(catalog[text] ?? text, values);
}

/**
 * One of two texts, or as many as the language has, for a number; %(num)s is the number.
 *
 * @param {string} one
 * @param {string} many
 * @param {number} num
 * @param {Record<string, string | number | undefined>} [values]
 * @returns {string}
 */
export function tn(one, many, num, values = {}) {
  const forms = catalog[one] ?? { one, other: many };
  return filled(forms[plurals.select(num)] ?? forms.other, { num, ...values });
}

/**
 * @param {string} text
 * @param {Record<string, string | number | undefined>} values
 */
function filled(text, values) {
  return text.replace(/%\((\w+)\)s/g, (mark, name) => String(values[name] ?? mark));
}
