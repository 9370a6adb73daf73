// What this tab keeps of a match over a refresh: a draft, a move on its way. Without storage it forgets, and works.

export function stored(match, name) {
  const key = `parlor/${match}/${name}`;
  return {
    read() {
      try {
        return JSON.parse(sessionStorage.getItem(key));
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
