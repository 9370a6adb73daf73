// What this tab keeps of a match over a refresh: a draft, a move on its way. Without storage it forgets, and works.

/**
 * @typedef {{read(): any, write(value: any): void}} Store - of one value; null when there is none
 */

/**
 * @param {string} match
 * @param {string} name
 * @returns {Store}
 */
export function stored(match, name) {
  const key = `parlor/${match}/${name}`;
  return {
    read() {
      try {
        return JSON.parse(sessionStorage.getItem(key) ?? "null");
      } catch {
        return null;
      }
    },
    write(value) {
      try {
        if (value) sessionStorage.setItem(key, JSON.stringify(value));
        else sessionStorage.removeItem(key);
      } catch {
        // A browser that forbids storage only loses the draft.
      }
    },
  };
}
