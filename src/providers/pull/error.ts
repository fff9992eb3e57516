/** A stream could not be pulled. The message is for the log: it may name hosts that clients are not to know of. */
export class PullError extends Error {
  override readonly name = 'PullError';
}

/** A URL for the log: without its query, in which secrets are. */
export function shownUrl(url: string): string {
  return url.replace(/[?#].*$/, '').slice(0, 300);
}
