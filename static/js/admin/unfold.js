// Shows of a form only what belongs to what was chosen in it.

const form = document.querySelector("#launch");

function unfold() {
  const given = new FormData(form);
  const chosen = (condition) => {
    const [name, value] = condition.split("=");
    return given.get(name) === value;
  };
  for (const part of form.querySelectorAll("[data-if]")) part.hidden = !chosen(part.dataset.if);
  for (const part of form.querySelectorAll("[data-unless]")) part.hidden = chosen(part.dataset.unless);
}

form.addEventListener("input", unfold);
unfold();
