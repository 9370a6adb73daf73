// Shows of a form only what belongs to what was chosen in it.

// `data-if="method=sft|tiny"` is shown where one of these values was chosen, `data-unless` where none was.

const form = document.querySelector("#launch");

function unfold() {
  const given = new FormData(form);
  const chosen = (condition) => {
    const [name, values] = condition.split("=");
    return values.split("|").includes(given.get(name));
  };
  for (const part of form.querySelectorAll("[data-if]")) part.hidden = !chosen(part.dataset.if);
  for (const part of form.querySelectorAll("[data-unless]")) part.hidden = chosen(part.dataset.unless);
}

form.addEventListener("input", unfold);
unfold();
