// Asks the server for a page as it is now.

import { parsed } from "../dom.js";

/** The page's body, or null when there was no answer or nobody is signed in any more. */
export async function page(address = location.href) {
  const { body } = await answer(address);
  return body;
}

/** The same, with whether somebody has to sign in first. */
export async function answer(address = location.href) {
  const got = await fetch(address, { headers: { Accept: "text/html" } }).catch(() => null);
  const signedOut = Boolean(got?.redirected);
  return { body: got?.ok && !signedOut ? (await parsed(got)).body : null, signedOut };
}
