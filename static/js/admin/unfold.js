// Shows of a form only what belongs to what was chosen in it.

// `data-if="method=sft|tiny"` is shown where one of these values was chosen, `data-unless` where none was.

import { find, findAll } from "../dom.js";

const form = find("#launch", document, HTMLFormElement);

function unfold() {
  const given = new FormData(form);
  const chosen = (/** @type {string} */ condition) => {
    const [name, values] = condition.split("=");
    return values.split("|").includes(String(given.get(name)));
  };
  for (const part of findAll("[data-if]", form)) part.hidden = !chosen(part.dataset.if ?? "");
  for (const part of findAll("[data-unless]", form)) part.hidden = chosen(part.dataset.unless ?? "");
}

form.addEventListener("input", unfold);
unfold();
