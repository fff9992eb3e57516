/** A stream could not be pulled. The message is for the log: it may name hosts that clients are not to know of. */
export class PullError extends Error {
  override readonly name = 'PullError';
}

/** A URL for the log: without what secrets are in, its user with the password, and its query. */
export function shownUrl(url: string): string {
  return url
    .replace(/[?#].*$/, '')
    .replace(/^([a-z][a-z\d+.-]*:\/\/)[^/]*@/i, '$1')
    .slice(0, 300);
}
