// Shows of a form only what belongs to what was chosen in it.

import { find, findAll } from "../dom.js";

const form = find("#launch", document, HTMLFormElement);

function unfold() {
  const given = new FormData(form);
  const chosen = (/** @type {string} */ condition) => {
    const [name, value] = condition.split("=");
    return given.get(name) === value;
  };
  for (const part of findAll("[data-if]", form)) part.hidden = !chosen(part.dataset.if ?? "");
  for (const part of findAll("[data-unless]", form)) part.hidden = chosen(part.dataset.unless ?? "");
}

form.addEventListener("input", unfold);
unfold();
