// Finds what the server has drawn, by its type.

/**
 * The first element that a selector matches. Throws an Error that names the selector if there is none of that type.
 *
 * @template {typeof Element} [C=typeof HTMLElement]
 * @param {string} selector
 * @param {ParentNode} [root]
 * @param {C} [type]
 * @returns {InstanceType<C>}
 */
export function find(selector, root = document, type = /** @type {any} */ (HTMLElement)) {
  const found = root.querySelector(selector);
  if (found instanceof type) return /** @type {InstanceType<C>} */ (found);
  throw new Error(`expected an ${type.name} ${selector} on this page, got ${found}`);
}

/**
 * All elements that a selector matches and that are of a type, in the order of the page.
 *
 * @template {typeof Element} [C=typeof HTMLElement]
 * @param {string} selector
 * @param {ParentNode} [root]
 * @param {C} [type]
 * @returns {InstanceType<C>[]}
 */
export function findAll(selector, root = document, type = /** @type {any} */ (HTMLElement)) {
  const found = [...root.querySelectorAll(selector)].filter((element) => element instanceof type);
  return /** @type {InstanceType<C>[]} */ (found);
}

/**
 * The element that an event happened to, or the nearest one around it, that a selector matches; null if there is none.
 *
 * @template {typeof Element} [C=typeof HTMLElement]
 * @param {Event} event
 * @param {string} selector
 * @param {C} [type]
 * @returns {InstanceType<C> | null}
 */
export function closest(event, selector, type = /** @type {any} */ (HTMLElement)) {
  const found = event.target instanceof Element ? event.target.closest(selector) : null;
  return found instanceof type ? /** @type {InstanceType<C>} */ (found) : null;
}

/**
 * The page in a server's answer, parsed.
 *
 * @param {Response} answer
 */
export async function parsed(answer) {
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

/**
 * Whether an answer is a page rather than JSON or nothing.
 *
 * @param {Response} answer
 */
export function isPage(answer) {
  return /html/.test(answer.headers.get("Content-Type") ?? "");
}
