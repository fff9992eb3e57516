/**
 * An error whose stack names a place, for one without: errors of malformed data have none. ava's TAP reporter ends the whole run
 * at such an error, and loses the results.
 */
export function placedError(error: unknown): unknown {
  if (!(error instanceof Error) || error.stack?.includes('\n    at ') === true) return error;
  return new Error(`${error.name}: ${error.message}`, { cause: error });
}
