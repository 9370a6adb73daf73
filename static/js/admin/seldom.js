// Does what is wanted often only now and then. Pure.

/**
 * `ask`, but at most once in `pause` milliseconds; what was asked for in between is asked for then.
 *
 * @param {number} pause - milliseconds
 * @param {() => Promise<void>} ask
 */
export function seldom(pause, ask) {
  let busy = false;
  let again = false;
  return async function asked() {
    again = busy;
    if (busy) return;
    busy = true;
    await ask();
    setTimeout(() => {
      busy = false;
      if (again) asked();
    }, pause);
  };
}
