// Asks the server for a page as it is now.

// The page's body, or null when there was no answer or nobody is signed in any more.
export async function page(address = location.href) {
  const { body } = await answer(address);
  return body;
}

// The same, with whether somebody has to sign in first.
export async function answer(address = location.href) {
  const got = await fetch(address, { headers: { Accept: "text/html" } }).catch(() => null);
  const signedOut = Boolean(got?.redirected);
  return { body: got?.ok && !signedOut ? new DOMParser().parseFromString(await got.text(), "text/html").body : null, signedOut };
}

// `ask`, but at most once in `pause` milliseconds; what was asked for in between is asked for then.
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
