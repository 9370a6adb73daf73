// The words of this page in its reader's language. What is written in the code is English; the server puts what it is in
// another language into the page, from translations/ (docs/translating.md).

const catalog = JSON.parse(document.querySelector("meta[name=words]")?.content ?? "{}");
const plurals = new Intl.PluralRules(language());

export function language() {
  return document.documentElement.lang;
}

// The text with values for its %(name)s.
export function t(text, values = {}) {
  return filled(catalog[text] ?? text, values);
}

// One of two texts, or as many as the language has, for a number; %(num)s is the number.
export function tn(one, many, num, values = {}) {
  const forms = catalog[one] ?? { one, other: many };
  return filled(forms[plurals.select(num)] ?? forms.other, { num, ...values });
}

function filled(text, values) {
  return text.replace(/%\((\w+)\)s/g, (mark, name) => values[name] ?? mark);
}
